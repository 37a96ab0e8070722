"""Fetches what the tests read of other projects, out of source packages that are pinned by their hashes.

Nothing of the packages is built or installed.
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
"""Vocabularies of real models with the tokens expected of them, and chat templates, of llama-cpp-python."""
_DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
_PARTS = ("", "/optional", "/optional/format")
JSON_SCHEMA_SUITE = {
    f"*/json/tests/{draft}{part}/*.json": f"{draft}{part}" for draft in _DRAFTS for part in _PARTS
}
"""The JSON Schema Test Suite, of jsonschema."""


@dataclass(frozen=True)
class Samples:
    """A folder of samples and the tools that fill it. ``pip`` runs in ``python``'s environment.

    ``pinned`` names the package; ``wanted`` says where files lie in it, and which folder of ours they go to.
    """

    folder: Path
    pinned: Path
    wanted: Mapping[str, str]
    pip: Path
    python: Path

    def fetch(self) -> None:
        """Download the package, take the samples out of it, and drop it."""
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
        """Nothing is compiled: pip only asks the package's back end, which ``python`` has, for its metadata."""
        options = ["--no-deps", "--require-hashes", "--no-binary", ":all:", "--no-build-isolation"]
        command = [self.pip, "--python", self.python, "download", "-qq", *options, "--dest", folder, "--requirement", self.pinned]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True)


def take(archive: Path, wanted: Mapping[str, str], folder: Path) -> None:
    """Write the wanted files of an archive below ``folder``, each by its last name alone."""
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
