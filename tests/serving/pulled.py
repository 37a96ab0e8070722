"""Puts the files of a directory into a store, as a pull does."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from llmd.registry.manifest import Manifest, ManifestFile
from llmd.registry.pulled_models import PulledModels


def install_pulled(models: Path, name: str, source: Path) -> Path:
    """Install a copy of a model directory as if it was pulled; returns its place below ``models``."""
    library = PulledModels(models)
    scratch = models / ".scratch"
    files = []
    with library.pulling():
        for path in sorted(source.iterdir()):
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copyfile(path, scratch)
            library.blobs.adopt(scratch, sha256)
            files.append(ManifestFile(path.name, path.stat().st_size, sha256))
        return library.install(name, Manifest(tuple(files), source=name, commit="1" * 40))
