"""Files for the prefix caches of unloaded models: one for each model directory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

import msgspec

from llmd.api.decoding import prepared
from llmd.models.model_path import is_model_path
from llmd.registry.cache_names import cache_name

_MAGIC = b"LLMDKV01"
_LENGTH_BYTES = 4
_MOST_BYTES = 1 << 16


class SpoolHeader(msgspec.Struct, frozen=True):
    """The header of a prefix cache file."""

    directory: str
    """The model's directory."""
    fingerprint: str
    """Identifies everything on which the contents depend."""

    def encoded(self) -> bytes:
        """Return the first bytes of a file."""
        text = msgspec.json.encode(self)
        return _MAGIC + len(text).to_bytes(_LENGTH_BYTES, "little") + text

    @classmethod
    def read(cls, file: BinaryIO) -> SpoolHeader | None:
        """Read a file up to the end of its header; return None if it has no valid header."""
        if file.read(len(_MAGIC)) != _MAGIC:
            return None
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        try:
            return msgspec.json.decode(file.read(min(length, _MOST_BYTES)), type=prepared(cls))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None


class Spools:
    """The prefix cache files of a cache directory."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "kv"

    def path(self, directory: Path) -> Path:
        """Return the file of a model directory, whether or not it exists."""
        return self._folder / f"{cache_name(directory)}.kv"

    def sweep(self) -> None:
        """Remove the files of models that are gone."""
        for path in sorted(self._folder.glob("*.kv")):
            with contextlib.suppress(OSError):
                with path.open("rb") as file:
                    header = SpoolHeader.read(file)
                if header is None or not is_model_path(Path(header.directory)):
                    path.unlink()
