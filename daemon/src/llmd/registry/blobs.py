"""Contents by hash: each is kept once, whoever needs it."""

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
"""A pull that nobody has gone on with for so long is given up."""
READ_ONLY = 0o444
"""Blobs are shared by versions: nobody is to write into one."""


class Blobs:
    """The files ``sha256-…`` of a folder; ``partial`` is for those that are on their way."""

    def __init__(self, folder: Path, partial: Path) -> None:
        self.folder = folder
        self.partial = partial

    def path(self, sha256: str) -> Path:
        return self.folder / f"sha256-{sha256}"

    def adopt(self, file: Path, sha256: str) -> None:
        """Make a complete file the blob of its content, durably."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        file.chmod(READ_ONLY)
        file.replace(self.path(sha256))

    def add_model(self, source: Path) -> tuple[ManifestFile, ...]:
        """Copies of the files of a directory, or of a GGUF file and its other parts: their owner may go on changing them."""
        if not source.is_dir():
            return tuple(self._add(path, path.name) for path in files_of(source))
        paths = [path for path in sorted(source.rglob("*")) if path.is_file() and path.name[0] != "."]
        return tuple(self._add(path, path.relative_to(source).as_posix()) for path in paths)

    def unfinished(self) -> list[int]:
        """The bytes of each part of a file that a pull has left, for the next pull to go on with."""
        sizes = []
        for path in self.partial.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # it has just been finished
                sizes += [] if _is_leftover(path) else [path.stat().st_size]
        return sizes

    def free(self, needed: Collection[str]) -> int:
        """Remove every blob but those, what is left of copies, and abandoned parts; returns the bytes.

        To be called while no pull is under way.
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
