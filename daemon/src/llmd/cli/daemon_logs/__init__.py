"""``llmd logs``: reads the log of a daemon, wherever it is."""
