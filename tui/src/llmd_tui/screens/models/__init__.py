"""The models of the daemon."""
