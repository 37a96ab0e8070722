"""Files that are replaced atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from llmd.api.errors import LlmdError, NotPermittedError

PRIVATE = 0o600


def replace_private_file(path: Path, content: bytes) -> None:
    """Replace a file that only its owner can read; like `replace_file`."""
    replace_file(path, content, PRIVATE)


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Replace a file atomically: readers see the old or the new content, also after a crash.

    Its owner stays the same if this user may give files away.

    Raises:
        LlmdError: the file cannot be written; the old content stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _take_over(path, handle, mode)
            os.fsync(handle)
        Path(draft).replace(path)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            Path(draft).unlink()
        raise _unwritable(path, error) from error


def _take_over(path: Path, handle: int, mode: int) -> None:
    """Give a draft the mode, and the owner of the file that it will replace."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        there = path.stat()
        os.fchown(handle, there.st_uid, there.st_gid)
    os.fchmod(handle, mode)


def _unwritable(path: Path, error: OSError) -> LlmdError:
    kind = NotPermittedError if isinstance(error, PermissionError) else LlmdError
    return kind(
        f"{path} cannot be written: {error}", hint="`llmd config paths` shows where llmd keeps its files"
    )
