"""Parsers for the reasoning and tool calls of model families."""
