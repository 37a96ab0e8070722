"""The local store: finds, pulls, copies and removes models by name."""
