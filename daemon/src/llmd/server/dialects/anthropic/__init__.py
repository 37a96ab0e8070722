"""Anthropic's Messages API, as its SDKs and Claude Code use it."""
