"""Tokens of an answer to its text, its reasoning and its calls."""
