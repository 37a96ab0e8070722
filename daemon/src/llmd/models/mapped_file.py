"""An open weight file of any format, mapped into memory."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.files import file_size, open_file

PIECE_BYTES = 1 << 20
AROUND_BYTES = 2 << 20
"""When a page is read, Linux also maps pages around it that it has cached: 64 KiB, and since 6.18 all that it
keeps together, at most this many bytes."""
Mapper = Callable[[BinaryIO], mmap.mmap]
"""Maps a whole file, read-only. Tests pass a mapper whose map cannot be read."""


def map_file(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class MappedFile:
    """Returns parts of a file as arrays, which keep the map alive after `close`. Thread-safe."""

    def __init__(self, path: Path, file: BinaryIO, *, mapper: Mapper) -> None:
        self.path = path
        self.size_bytes = file_size(file)
        self._file = file
        self._map = mapper(file)

    def array(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int, *, tensor: str
    ) -> NDArray[np.generic]:
        """Return a read-only array of ``shape`` that starts at the byte ``begin``; errors name ``tensor``.

        Raises:
            CheckpointError: the file has shrunk since it was opened: reading past its end would crash the
                process.
        """
        self._check_unshrunk(tensor)
        count = math.prod(shape)
        if not count:
            return np.empty(shape, dtype)
        return np.frombuffer(self._map, dtype, count=count, offset=begin).reshape(shape)

    def fetch(self, begin: int, num_bytes: int) -> None:
        """Read a part from the disk into the page cache before it is used.

        Raises:
            OSError: it cannot be read.
        """
        end = begin + num_bytes
        piece = memoryview(bytearray(min(num_bytes, PIECE_BYTES)))
        for at in range(begin, end, PIECE_BYTES):
            os.preadv(self._file.fileno(), [piece[: end - at]], at)

    def advise(self, begin: int, num_bytes: int, *, needed: bool) -> None:
        """Begin to read a part of the file from the disk, or drop its mapped pages from this process, also
        those of its neighbours that were mapped with them.
        """
        around = 0 if needed else AROUND_BYTES
        first = max(begin - around, 0) // mmap.PAGESIZE * mmap.PAGESIZE
        end = min(begin + num_bytes + around, self.size_bytes)
        if num_bytes and end > first:
            advice = mmap.MADV_WILLNEED if needed else mmap.MADV_DONTNEED
            self._map.madvise(advice, first, end - first)

    def release(self) -> None:
        """Drop the mapped pages from this process; they are read from the file again on their next use."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        self._file.close()
        with contextlib.suppress(BufferError):  # arrays still use the map; the last one closes it
            self._map.close()

    def _check_unshrunk(self, tensor: str) -> None:
        size_bytes = file_size(self._file)
        if size_bytes < self.size_bytes:
            raise CheckpointError(
                f"the file shrank from {self.size_bytes} to {size_bytes} bytes while it was in use",
                file=str(self.path),
                tensor=tensor,
                hint="load the model again; replace weight files by renaming a new file over the old one",
            )


@contextlib.contextmanager
def opening(path: Path) -> Iterator[BinaryIO]:
    """Open a file and close it only if the block fails; otherwise the caller closes it.

    Raises:
        CheckpointError: it cannot be opened, or the block raised an `OSError`.
    """
    file = open_file(path)
    try:
        yield file
    except OSError as error:
        file.close()
        raise CheckpointError(
            f"cannot be mapped: {error.strerror}", file=str(path), hint="check the disk, and free memory"
        ) from error
    except BaseException:
        file.close()
        raise
