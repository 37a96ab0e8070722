module llmd.example/chat

go 1.19
