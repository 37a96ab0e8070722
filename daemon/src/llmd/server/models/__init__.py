"""The models that the daemon knows, loads and unloads."""
