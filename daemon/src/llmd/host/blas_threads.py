"""The threads of NumPy's linear algebra library."""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def keep_blas_single_threaded() -> None:
    """Give the library one thread in this process; to be called before NumPy is imported.

    The others would spin for 40 ms after they start, when a daemon with two processors has none to spare, and sums of the
    reference device would depend on how many there are.
    """
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
