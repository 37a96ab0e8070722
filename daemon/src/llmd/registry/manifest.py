"""The files of one version of a model, each with the hash of its content."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

import msgspec

from llmd.api.decoding import prepared


class ManifestFile(msgspec.Struct, frozen=True):
    """A file of a model directory."""

    path: str
    """Relative to the model directory."""
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of a model."""

    files: tuple[ManifestFile, ...]
    source: str = ""
    """The hub's repository."""
    commit: str = ""
    """The commit in that repository."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def id(self) -> str:
        """Hash of the manifest itself: equal for equal versions."""
        return hashlib.sha256(self.encoded()).hexdigest()

    def encoded(self) -> bytes:
        return msgspec.json.encode(self, order="sorted")

    @classmethod
    def decode(cls, content: bytes) -> Manifest:
        """Read an encoded manifest.

        Raises:
            msgspec.DecodeError: it is damaged.
            ValueError: a path leads out of the model directory.
        """
        manifest = msgspec.json.decode(content, type=prepared(cls))
        for file in manifest.files:
            check_path(file.path)
        return manifest


def check_path(path: str) -> None:
    """Raise `ValueError` if a path could lead out of a model directory."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or not path.isprintable():
        raise ValueError(f"{path!r} leads out of the model")
