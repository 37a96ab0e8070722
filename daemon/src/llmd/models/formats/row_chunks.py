"""Work on the rows of a matrix, on all cores: NumPy lets go of the interpreter while it computes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from llmd.api.machine import num_threads

CHUNK_ELEMENTS = 1 << 16
"""Elements of a chunk: a few float32 copies of them stay in the second-level cache."""


def for_row_chunks(
    num_rows: int, row_len: int, work: Callable[[slice], None], elements: int = CHUNK_ELEMENTS
) -> None:
    """Call ``work`` with slices of rows that together are all of them, in any order, from several threads.

    A slice has about so many ``elements``, and one row at least.

    The first exception that a call raises is raised here, after all have ended.
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
