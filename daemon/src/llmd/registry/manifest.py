"""What one version of a model consists of. The manifest names every file by the hash of its content."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

import msgspec


class ManifestFile(msgspec.Struct, frozen=True):
    """A file of a model directory; ``path`` is relative to it."""

    path: str
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """``source`` is the hub's repository, or empty for a directory of this machine; ``commit`` its version there."""

    files: tuple[ManifestFile, ...]
    source: str = ""
    commit: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def id(self) -> str:
        """The hash of the manifest itself: equal for equal versions."""
        return hashlib.sha256(self.encoded()).hexdigest()

    def encoded(self) -> bytes:
        return msgspec.json.encode(self, order="sorted")

    @classmethod
    def decode(cls, content: bytes) -> Manifest:
        """Raises `msgspec.DecodeError` or `ValueError` where it is damaged or a path leads out of the directory."""
        manifest = msgspec.json.decode(content, type=cls)
        for file in manifest.files:
            check_path(file.path)
        return manifest


def check_path(path: str) -> None:
    """Raises `ValueError` for a path that could lead out of a model directory."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or not path.isprintable():
        raise ValueError(f"{path!r} leads out of the model")
