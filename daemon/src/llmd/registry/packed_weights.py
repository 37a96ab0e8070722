"""Where devices keep weights in their own layout: files of the cache directory, a folder for each model directory."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from llmd.registry.cache_names import cache_name

_MODEL = "model"
"""A link in each folder to the model directory: where it leads nowhere, the model is gone."""


class PackedWeightFiles:
    """The files of a cache folder. Losing one costs the time of packing its weights anew."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "packed"

    def open(self, directory: Path, fingerprint: str, num_bytes: int, limit_bytes: int) -> Path | None:
        """The file for weights of a model directory, whether or not it is there; it now counts as the last one used.

        ``fingerprint`` names all that its contents depend on, but for the device's layout; they take about
        ``num_bytes``. Files that were used longest ago go until all take no more than ``limit_bytes``. None where that
        is not enough, or the folder cannot be written.
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
