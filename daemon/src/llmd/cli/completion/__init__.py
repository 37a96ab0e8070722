"""Completion of commands, options and names in a shell."""
