"""Turn the tokens of an answer into text, reasoning and tool calls."""
