"""The terminal interface to llmd. It speaks to the daemon over HTTP alone."""
