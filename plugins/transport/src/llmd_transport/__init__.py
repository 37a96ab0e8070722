"""Transports of llmd. Importing the root imports nothing else; each module holds one transport."""
