"""Chats on disk: an SQLite database. Nothing here knows the terminal or the daemon."""
