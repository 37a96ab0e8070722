"""The web page of the daemon: its files, which are served as they are, and their headers."""
