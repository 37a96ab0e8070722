"""Process the rows of a matrix on all cores: NumPy releases the GIL while it computes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from llmd.api.machine import num_threads

CHUNK_ELEMENTS = 1 << 16
"""Elements of a chunk: a few float32 copies of it fit in the L2 cache."""


def for_row_chunks(
    num_rows: int, row_len: int, work: Callable[[slice], None], elements: int = CHUNK_ELEMENTS
) -> None:
    """Call ``work`` for slices that cover all rows, in any order, from several threads.

    A slice has about ``elements`` elements, and at least one row. The first exception of a call is raised
    after all calls have ended.
    """
    step = max(1, elements // max(row_len, 1))
    chunks = [slice(first, min(first + step, num_rows)) for first in range(0, num_rows, step)]
    if len(chunks) < 2:
        for chunk in chunks:
            work(chunk)
        return
    with ThreadPoolExecutor(min(num_threads(), len(chunks))) as pool:
        for _ in pool.map(work, chunks):
            pass
