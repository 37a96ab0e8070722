"""Open files of a model directory; errors name the file."""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from llmd.api.errors import CheckpointError

SETTLED_NS = 2_000_000_000
"""A more recently written file could change again without a new modification time."""

_unsettled = itertools.count(1)


def is_named(path: Path) -> bool:
    """Whether the name exists. A broken link counts: opening it gives the error."""
    return os.path.lexists(path)


def list_names(directory: Path) -> list[str]:
    """Return the names in a directory, sorted.

    Raises:
        CheckpointError: there is no such directory, or it cannot be read.
    """
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"cannot be listed: {error.strerror}",
            file=str(directory),
            hint="check the path and its permissions",
        ) from error


class Stamp(NamedTuple):
    """A version of a file: two equal stamps mean that the file has not changed in between."""

    path: Path
    device: int
    inode: int
    num_bytes: int
    modified_ns: int
    unsettled: int
    """0; another number for each stamp of a file that was just written, so that such stamps never match."""


Stamps = tuple[Stamp, ...]


def stamp_of(path: Path, status: os.stat_result) -> Stamp:
    """Return the stamp of a file with this status."""
    is_settled = time.time_ns() - status.st_mtime_ns >= SETTLED_NS
    number = 0 if is_settled else next(_unsettled)
    return Stamp(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, number)


def stamps(paths: Iterable[Path]) -> Stamps:
    """Return the stamp of each file.

    Raises:
        CheckpointError: a file is missing, or its status cannot be read.
    """
    try:
        return tuple(stamp_of(path, path.stat()) for path in paths)
    except OSError as error:
        raise CheckpointError(
            f"cannot be read: {error.strerror}",
            file=str(error.filename),
            hint="check the path and its permissions",
        ) from error


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; a device or pipe is refused because it could block.

    Raises:
        CheckpointError: the file is missing, not a regular file, or not readable.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(
                "not a regular file", file=str(path), hint="replace it with the file itself, or a link to it"
            )
        return path.open("rb")
    except FileNotFoundError as error:
        raise CheckpointError(
            "the file is missing", file=str(path), hint="copy it from where the model came from"
        ) from error
    except OSError as error:
        raise CheckpointError(
            f"cannot be read: {error.strerror}", file=str(path), hint="check the path and its permissions"
        ) from error


def file_size(file: BinaryIO) -> int:
    """Return the current size in bytes, which may have changed since the file was opened."""
    return os.fstat(file.fileno()).st_size


def read_bytes(path: Path, *, max_bytes: int) -> bytes:
    """Return the whole content of a file of at most ``max_bytes``.

    Raises:
        CheckpointError: the file is too large, or `open_file` refuses it.
    """
    with open_file(path) as file:
        size = file_size(file)
        if size > max_bytes:
            raise CheckpointError(
                f"larger than {max_bytes} bytes, the limit for such a file",
                file=str(path),
                hint="this is another kind of file; copy the right one from where the model came from",
            )
        return file.read(size)  # read(max_bytes) would allocate that much
