"""A recording of a daemon at work, so that anyone can look at the interface."""
