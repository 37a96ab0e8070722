"""The dispatches of each op: one module per kind of op, as in ``shaders/``."""
