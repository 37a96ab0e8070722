"""The C library's heap in a process that runs for months."""

from __future__ import annotations

import ctypes

M_MMAP_THRESHOLD = -3
"""The parameter's number in glibc's ``malloc.h``."""
LARGE_BYTES = 64 << 10


def map_large_blocks() -> None:
    """Give every block of 64 KiB and more pages of its own, which go back to the system when it is freed.

    glibc begins so at 128 KiB, but raises that limit to the size of each such block that is freed (``mallopt(3)``). asyncio
    receives into 256 KiB at a time: from the first such block on, all come out of the heap, and what they leave between
    what stays is never whole again. C libraries without ``mallopt`` are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
