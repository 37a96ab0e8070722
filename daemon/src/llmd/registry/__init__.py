"""The local store: which models there are, and what each is called."""
