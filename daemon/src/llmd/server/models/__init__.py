"""Which models there are, which are loaded, and which make room."""
