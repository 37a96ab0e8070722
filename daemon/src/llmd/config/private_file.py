"""Files that only their owner can read, replaced atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from llmd.api.errors import LlmdError


def replace_private_file(path: Path, content: bytes) -> None:
    """Replace a file atomically: readers see the old or the new content, also after a crash.

    Raises:
        LlmdError: the file cannot be written; the old content stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        Path(draft).replace(path)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            Path(draft).unlink()
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> LlmdError:
    return LlmdError(
        f"{path} cannot be written: {error}", hint="`llmd config paths` shows where llmd keeps its files"
    )
