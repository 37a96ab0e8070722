"""Weights in a device's own layout: files in the cache directory, with a folder for each model directory."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from llmd.registry.cache_names import cache_name

_MODEL = "model"
"""Name of the link to the model directory in each folder; if it is broken, the model is gone."""


class PackedWeightFiles:
    """The packed files of a cache directory. A lost file only costs the time to pack the weights again."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "packed"

    def open(self, directory: Path, fingerprint: str, num_bytes: int, limit_bytes: int) -> Path | None:
        """Return the path for a model's packed weights, whether or not the file exists; mark it as just used.

        ``fingerprint`` identifies the contents, apart from the device's layout; they take about
        ``num_bytes``. The least recently used files are removed until all take at most ``limit_bytes``.
        Return None if ``num_bytes`` alone exceeds that limit, or the folder cannot be written.
        """
        path = self._of(directory) / f"{fingerprint}.packed"
        try:
            self._make_folder(path.parent, directory)
            with contextlib.suppress(FileNotFoundError):
                os.utime(path)
            present = path.exists()
            self._shrink(limit_bytes - (0 if present else num_bytes), keep=path)
        except OSError:
            return None
        return path if num_bytes <= limit_bytes else None

    def sweep(self) -> None:
        """Remove the files of models that are gone."""
        for folder in self._folder.glob("*"):
            if not (folder / _MODEL).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _of(self, directory: Path) -> Path:
        return self._folder / cache_name(directory)

    def _make_folder(self, folder: Path, directory: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (folder / _MODEL).symlink_to(directory.resolve())

    def _shrink(self, most_bytes: int, keep: Path) -> None:
        files = sorted(self._files(), key=lambda found: found[1].st_mtime_ns)
        total = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            if total <= most_bytes:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                total -= stat.st_size

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(FileNotFoundError):
                if path.name != _MODEL:
                    yield path, path.stat()
