"""The CPU backend of llmd. Importing the root imports nothing else; ``plugin`` holds the hooks."""
