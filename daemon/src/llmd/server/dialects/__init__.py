"""HTTP APIs that come with llmd; others come as plugins, through the same door."""
