"""The log of the daemon and its engines."""
