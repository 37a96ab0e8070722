"""Content-addressed files: each content is stored once, under its SHA-256."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Collection
from pathlib import Path

from llmd.models.model_path import files_of
from llmd.registry.manifest import ManifestFile

READ_BYTES = 1 << 20
ABANDONED_S = 7 * 24 * 3600.0
"""Age at which an unfinished download counts as abandoned."""
READ_ONLY = 0o444
"""Mode of blobs: versions share them, so nothing may write to one."""


class Blobs:
    """The ``sha256-…`` files of ``folder``; unfinished downloads and copies are in ``partial``."""

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

    def add_model(self, source: Path) -> tuple[ManifestFile, ...]:
        """Copy the files of a directory, or a GGUF file and its other parts.

        They are copied because their owner may still change them.
        """
        if not source.is_dir():
            return tuple(self._add(path, path.name) for path in files_of(source))
        paths = [path for path in sorted(source.rglob("*")) if path.is_file() and path.name[0] != "."]
        return tuple(self._add(path, path.relative_to(source).as_posix()) for path in paths)

    def unfinished(self) -> list[int]:
        """Return the size of each unfinished download, which the next pull resumes."""
        sizes = []
        for path in self.partial.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # just finished
                sizes += [] if _is_leftover(path) else [path.stat().st_size]
        return sizes

    def free(self, needed: Collection[str]) -> int:
        """Remove all other blobs, leftover copies and locks, and abandoned downloads; return the bytes freed.

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

    def _add(self, path: Path, name: str) -> ManifestFile:
        self.partial.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        copied = self.partial / f"copy-{os.getpid()}"
        try:
            with path.open("rb") as source, copied.open("wb") as target:
                while chunk := source.read(READ_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
            size_bytes = copied.stat().st_size
            self.adopt(copied, digest.hexdigest())
        finally:
            copied.unlink(missing_ok=True)
        return ManifestFile(name, size_bytes, digest.hexdigest())


def _is_leftover(path: Path) -> bool:
    return path.name.endswith(".lock") or path.name.startswith("copy-")


def _is_abandoned(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > ABANDONED_S
