"""Content-addressed files: each content is stored once, under its SHA-256."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path

ABANDONED_S = 7 * 24 * 3600.0
"""Age at which an unfinished download counts as abandoned."""
READ_ONLY = 0o444
"""Mode of blobs: versions share them, so nothing may write to one."""


class Blobs:
    """The ``sha256-…`` files of ``folder``; unfinished downloads are in ``partial``."""

    def __init__(self, folder: Path, partial: Path) -> None:
        self.folder = folder
        self.partial = partial

    def path(self, sha256: str) -> Path:
        return self.folder / f"sha256-{sha256}"

    def adopt(self, file: Path, sha256: str) -> None:
        """Move a complete file into the blobs, durably."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        file.chmod(READ_ONLY)
        file.replace(self.path(sha256))

    def unfinished(self) -> list[int]:
        """Return the size of each unfinished download, which the next pull resumes."""
        sizes = []
        for path in self.partial.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # just finished
                sizes += [] if _is_leftover(path) else [path.stat().st_size]
        return sizes

    def free(self, needed: Collection[str]) -> int:
        """Remove all other blobs, leftover locks and abandoned downloads; return the bytes freed.

        Call this only while no pull is running.
        """
        freed = 0
        kept = {self.path(sha256) for sha256 in needed}
        unneeded = [blob for blob in self.folder.glob("sha256-*") if blob not in kept]
        leftovers = [path for path in self.partial.glob("*") if _is_leftover(path) or _is_abandoned(path)]
        for path in [*unneeded, *leftovers]:
            freed += path.stat().st_size
            path.unlink()
        return freed


def _is_leftover(path: Path) -> bool:
    return path.name.endswith(".lock")


def _is_abandoned(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > ABANDONED_S
