"""Settings of the C library's heap for a process that runs for months."""

from __future__ import annotations

import ctypes

M_MMAP_THRESHOLD = -3
"""The parameter's number in glibc's ``malloc.h``."""
LARGE_BYTES = 64 << 10


def map_large_blocks() -> None:
    """Map every block of 64 KiB or more separately, so that its memory is returned when it is freed.

    glibc starts with a limit of 128 KiB, but raises it to the size of each larger block that is freed
    (``mallopt(3)``). asyncio receives into 256 KiB buffers: after the first one is freed, all later ones
    come from the heap and fragment it. Has no effect with C libraries without ``mallopt``.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
