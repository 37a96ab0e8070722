"""Limits the threads of NumPy's linear algebra library."""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def keep_blas_single_threaded() -> None:
    """Limit the library to one thread in this process. Call this before NumPy is imported.

    More threads would spin for 40 ms after they start, when a daemon on two processors has none to spare, and
    the sums of the reference device would depend on their number.
    """
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
