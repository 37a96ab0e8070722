"""Anthropic's API, as its clients and Claude Code speak it."""
