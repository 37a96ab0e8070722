"""The state of a daemon as its events tell it, and how it changed over time."""
