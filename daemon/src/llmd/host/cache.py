"""Results cached on disk, with a fingerprint of what they depend on."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llmd.api.decoding import prepared

T = TypeVar("T")
log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, frozen=True):
    fingerprint: str
    value: msgspec.Raw


class Cache:
    """A folder of small JSON files, ``<kind>/<key>.json``. It can be deleted at any time.

    A file that is unreadable or has another shape or fingerprint counts as absent. A folder that cannot be
    written is logged once and otherwise ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._has_warned = False

    def get(self, kind: str, key: str, fingerprint: str, type_: type[T]) -> T | None:
        """Return the value stored under this key with this fingerprint, or None."""
        try:
            entry = msgspec.json.decode(self._path(kind, key).read_bytes(), type=prepared(_Entry))
            return (
                msgspec.json.decode(entry.value, type=prepared(type_))
                if entry.fingerprint == fingerprint
                else None
            )
        except (OSError, msgspec.MsgspecError):
            return None

    def values(self, kind: str) -> Iterator[Any]:
        """Yield all values of a kind as plain JSON, current or not: enough to suggest names."""
        for path in (self.folder / kind).glob("*.json"):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                yield msgspec.json.decode(msgspec.json.decode(path.read_bytes(), type=prepared(_Entry)).value)

    def put(self, kind: str, key: str, fingerprint: str, value: object) -> None:
        """Store a value. The file is replaced atomically: readers see the old value or the new one."""
        path = self._path(kind, key)
        data = msgspec.json.encode(_Entry(fingerprint, msgspec.Raw(msgspec.json.encode(value))))
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as error:
            self._warn(path, error)
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _warn(self, path: Path, error: OSError) -> None:
        """Warn about the first file that cannot be written: others fail for the same reason."""
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(level, "cache_not_written", extra={"path": str(path), "reason": error.strerror or str(error)})

    def _path(self, kind: str, key: str) -> Path:
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in key)
        return self.folder / kind / f"{safe}.json"
