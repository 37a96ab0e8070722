"""OpenAI's Responses API, which Codex uses."""
