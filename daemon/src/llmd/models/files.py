"""Files of a model directory, opened with errors that name them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from llmd.api.errors import CheckpointError


def is_named(path: Path) -> bool:
    """Whether something of that name lies there, if only a link that leads nowhere: opening it says so."""
    return os.path.lexists(path)


def list_names(directory: Path) -> list[str]:
    """The names of what lies in a directory, sorted.

    Raises:
        CheckpointError: there is no such directory, or it may not be read.
    """
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise CheckpointError(
            f"cannot be listed: {error.strerror}",
            file=str(directory),
            hint="check the path and its permissions",
        ) from error


Stamps = tuple[tuple[Path, int, int], ...]


def stamps(paths: Iterable[Path]) -> Stamps:
    """Each file with its size and when it was last written, in nanoseconds: what tells whether it is still the same.

    Raises:
        CheckpointError: a file is missing, or may not be looked at.
    """
    try:
        return tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    except OSError as error:
        raise CheckpointError(
            f"cannot be read: {error.strerror}",
            file=str(error.filename),
            hint="check the path and its permissions",
        ) from error


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; a device or pipe is refused before it could block.

    Raises:
        CheckpointError: the file is missing, no regular file, or may not be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CheckpointError(
                "not a regular file", file=str(path), hint="put the file itself, or a link to it, there"
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
    """Size in bytes now, whoever changed the file since it was opened."""
    return os.fstat(file.fileno()).st_size


def read_bytes(path: Path, *, max_bytes: int) -> bytes:
    """The whole content of a file of at most ``max_bytes``.

    Raises:
        CheckpointError: as `open_file`; the file is too large.
    """
    with open_file(path) as file:
        size = file_size(file)
        if size > max_bytes:
            raise CheckpointError(
                f"larger than the {max_bytes} bytes that such a file may have",
                file=str(path),
                hint="this is another kind of file; copy the right one from where the model came from",
            )
        return file.read(size)  # reading up to the limit would allocate as much
