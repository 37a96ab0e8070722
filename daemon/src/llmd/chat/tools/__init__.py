"""Tools in prompts, and grammars for tool calls in answers."""
