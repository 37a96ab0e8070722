"""Uses a running daemon, found like the commands do: LLMD_HOST, the user's socket, the system's, TCP."""

import llmd

client = llmd.Client()
print(f"daemon {client.version()} at {client.address}")
print("models:", ", ".join(model["id"] for model in client.models()))

messages = [{"role": "user", "content": "How do I list my models?"}]
for piece in client.stream_chat(messages, model="guide", max_tokens=60):
    print(piece.text, end="", flush=True)
    if piece.usage:
        print(f"\n{piece.usage.completion_tokens} tokens")
