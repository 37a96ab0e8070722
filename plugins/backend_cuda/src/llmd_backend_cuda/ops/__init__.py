"""The launches of each op: one module per kind of op, as in ``kernels/``."""
