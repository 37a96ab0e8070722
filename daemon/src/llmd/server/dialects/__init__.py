"""The HTTP APIs that come with llmd. Plugins add others in the same way."""
