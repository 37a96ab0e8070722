def version() -> str:
    """Version of the distribution that this module was built from."""
