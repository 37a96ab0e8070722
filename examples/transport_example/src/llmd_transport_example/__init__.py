"""A transport for llmd. Importing this package imports nothing else; ``plugin`` has the hook."""
