"""An example backend of llmd. Importing the root imports nothing else; ``plugin`` holds the hook."""
