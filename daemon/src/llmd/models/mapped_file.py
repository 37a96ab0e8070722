"""A weight file that is open and mapped into memory, whatever its form."""

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
Mapper = Callable[[BinaryIO], mmap.mmap]
"""Maps a whole file, read-only. Tests pass one whose map cannot be read."""


def map_file(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class MappedFile:
    """Hands out parts of a file as arrays, which keep the map alive after `close`. Thread-safe."""

    def __init__(self, path: Path, file: BinaryIO, *, mapper: Mapper) -> None:
        self.path = path
        self.size_bytes = file_size(file)
        self._file = file
        self._map = mapper(file)

    def array(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int, *, tensor: str
    ) -> NDArray[np.generic]:
        """``shape`` elements from the byte ``begin`` on, read-only; they are those of ``tensor``.

        Raises:
            CheckpointError: the file has shrunk since it was opened, so that touching its end would be fatal.
        """
        self._check_unshrunk(tensor)
        count = math.prod(shape)
        if not count:
            return np.empty(shape, dtype)
        return np.frombuffer(self._map, dtype, count=count, offset=begin).reshape(shape)

    def fetch(self, begin: int, num_bytes: int) -> None:
        """Read a part from the disk, so that the system has it in memory when it is used.

        Raises:
            OSError: the disk does not give it.
        """
        end = begin + num_bytes
        piece = memoryview(bytearray(min(num_bytes, PIECE_BYTES)))
        for at in range(begin, end, PIECE_BYTES):
            os.preadv(self._file.fileno(), [piece[: end - at]], at)

    def release(self) -> None:
        """Give the memory back that its pages take in this process; whoever touches one again gets it from the file."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        self._file.close()
        with contextlib.suppress(BufferError):  # arrays still refer to the map; the last one ends it
            self._map.close()

    def _check_unshrunk(self, tensor: str) -> None:
        size_bytes = file_size(self._file)
        if size_bytes < self.size_bytes:
            raise CheckpointError(
                f"the file shrank from {self.size_bytes} to {size_bytes} bytes while it was in use",
                file=str(self.path),
                tensor=tensor,
                hint="write a new version beside the old file and rename it; load the model again",
            )


@contextlib.contextmanager
def opening(path: Path) -> Iterator[BinaryIO]:
    """A file that stays open where all goes well inside, for one who closes it.

    Raises:
        CheckpointError: it cannot be opened, or what happens inside cannot be done with it.
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
