"""Access to a daemon: over HTTP, or recorded."""
