"""The devices of the daemon, and what runs on them."""
