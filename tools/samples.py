"""Downloads samples of other projects for the tests, from source packages pinned by hash.

The packages are neither built nor installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

LLAMA_CPP = {
    "*/llama.cpp/models/ggml-vocab-*": "vocabularies",
    "*/llama.cpp/models/templates/*.jinja": "templates",
}
"""From llama-cpp-python: vocabularies of real models with their expected tokens, and chat templates."""
_DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
_PARTS = ("", "/optional", "/optional/format")
JSON_SCHEMA_SUITE = {
    f"*/json/tests/{draft}{part}/*.json": f"{draft}{part}" for draft in _DRAFTS for part in _PARTS
}
"""From jsonschema: the JSON Schema Test Suite."""


@dataclass(frozen=True)
class Samples:
    """A folder of samples and how to fill it."""

    folder: Path
    pinned: Path
    """The requirements file that names the package."""
    wanted: Mapping[str, str]
    """The subfolder for each pattern of paths in the package."""
    pip: Path
    python: Path
    """The interpreter in whose environment ``pip`` runs."""

    def fetch(self) -> None:
        """Download the package, extract the samples and delete the package."""
        fresh = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        self._download(fresh)
        (archive,) = fresh.glob("*.tar.gz")
        take(archive, self.wanted, fresh)
        archive.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)
        fresh.rename(self.folder)

    def _download(self, folder: Path) -> None:
        """Download without compiling: pip only asks the build back end of ``python`` for metadata."""
        options = ["--no-deps", "--require-hashes", "--no-binary", ":all:", "--no-build-isolation"]
        command = [self.pip, "--python", self.python, "download", "-qq", *options, "--dest", folder, "--requirement", self.pinned]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True)


def take(archive: Path, wanted: Mapping[str, str], folder: Path) -> None:
    """Write the wanted files of an archive to ``folder``, each under its file name."""
    for kind in wanted.values():
        (folder / kind).mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as packed:
        for member, kind in _wanted(packed, wanted):
            content = packed.extractfile(member)
            if content is not None:
                (folder / kind / PurePosixPath(member.name).name).write_bytes(content.read())


def _wanted(packed: tarfile.TarFile, wanted: Mapping[str, str]) -> Iterator[tuple[tarfile.TarInfo, str]]:
    for member in packed:
        for pattern, kind in wanted.items():
            if member.isfile() and PurePosixPath(member.name).match(pattern):
                yield member, kind
