"""Conversations to prompts: chat templates, rendered in a process of their own."""
