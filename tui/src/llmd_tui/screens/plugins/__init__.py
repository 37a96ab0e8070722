"""The plugins of the daemon."""
