"""OpenAI's Responses API, the one that Codex speaks."""
