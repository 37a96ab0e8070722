"""The chat: conversations with models, kept on disk."""
