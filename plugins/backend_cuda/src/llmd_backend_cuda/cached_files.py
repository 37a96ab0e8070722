"""Files of the user's cache: whole or not there, and as they were written.

Others may delete them at any time. Each begins with the digest of its contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

_DAY_S = 86400.0
_DIGEST_BYTES = hashlib.sha256().digest_size


def read_file(path: Path) -> bytes | None:
    """Return the contents of a file, and note that it was used; None if there is no complete file."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAY_S:
            os.utime(path)
    contents = stored[_DIGEST_BYTES:]
    return contents if contents and hashlib.sha256(contents).digest() == stored[:_DIGEST_BYTES] else None


def write_file(path: Path, contents: bytes) -> None:
    """Write a file, also in place of another. Readers see all of it or nothing.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(hashlib.sha256(contents).digest() + contents)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
