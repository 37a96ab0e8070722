"""The prefix cache on disk, while its model is unloaded.

A file has a `SpoolHeader`, then a record for each block, most recently used first: the group (uint32); a
CRC-32 of group, key and contents; the key; the contents. A record with a group of all ones ends it. The file
is only a cache: if anything is wrong with it, the blocks are computed again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from llmd.engine.steps.pipeline import Pipeline
from llmd.pager.block_keys import KEY_BYTES
from llmd.pager.pager import Pager
from llmd.pager.pool import Key
from llmd.registry.spools import SpoolHeader

log = logging.getLogger(__name__)

_RECORD = struct.Struct(f"<II{KEY_BYTES}s")
_END = (1 << 32) - 1


class _UnusableError(Exception):
    """The file must not be used; the message says why."""


class KVSpool:
    """Saves the cached blocks of a pager to a file, and loads them. Used between steps."""

    def __init__(
        self, path: Path, header: SpoolHeader, pager: Pager, pipeline: Pipeline, limit_bytes: int
    ) -> None:
        self._path = path
        self._header = header
        self._pager = pager
        self._pipeline = pipeline
        self._limit_bytes = limit_bytes

    def save(self, stop: Callable[[], bool]) -> None:
        """Write the most recently used blocks, up to the size limit or until ``stop`` returns True.

        If there is nothing to write, an older file stays. Errors such as a full disk are only logged.
        """
        new = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                count = self._write(file, stop)
            if count:
                new.replace(self._path)
            else:
                new.unlink()
        except OSError as error:
            log.warning("kv_spool_not_saved", extra={"reason": str(error)})
            with contextlib.suppress(OSError):
                new.unlink()
        else:
            log.info("kv_spool_saved", extra={"blocks": count})

    def load(self) -> None:
        """Load blocks from the file while the pager has empty ones. Remove a file that cannot be used."""
        try:
            with self._path.open("rb") as file:
                count = self._read(file)
        except FileNotFoundError:
            return
        except (OSError, _UnusableError) as error:
            log.warning("kv_spool_dropped", extra={"reason": str(error)})
            with contextlib.suppress(OSError):
                self._path.unlink()
        else:
            log.info("kv_spool_loaded", extra={"blocks": count})

    def _write(self, file: BinaryIO, stop: Callable[[], bool]) -> int:
        left = self._limit_bytes - file.write(self._header.encoded()) - _RECORD.size
        count = 0
        for group, key, block in self._pager.cached():
            left -= _RECORD.size + self._pipeline.block_bytes(group)
            if left < 0 or stop():
                break
            contents = self._pipeline.read_block(group, block).tobytes()
            file.write(_RECORD.pack(group, _checksum(group, key, contents), key) + contents)
            count += 1
        file.write(_RECORD.pack(_END, 0, bytes(KEY_BYTES)))
        return count

    def _read(self, file: BinaryIO) -> int:
        if SpoolHeader.read(file) != self._header:
            raise _UnusableError("it was written for another model, device or setting")
        count = 0
        for group, key, contents in self._records(file):
            block = self._pager.pools[group].adopt(key)
            if block is not None:
                self._pipeline.write_block(group, block, np.frombuffer(contents, np.uint8))
                count += 1
        return count

    def _records(self, file: BinaryIO) -> Iterator[tuple[int, Key, bytes]]:
        """Yield the blocks with correct checksums; raise at the first damaged one."""
        while len(head := file.read(_RECORD.size)) == _RECORD.size:
            group, checksum, key = _RECORD.unpack(head)
            if group == _END:
                return
            if group >= len(self._pager.pools):
                break
            contents = file.read(self._pipeline.block_bytes(group))
            if _checksum(group, key, contents) != checksum:
                break
            yield group, key, contents
        raise _UnusableError("it is damaged")


def _checksum(group: int, key: Key, contents: bytes) -> int:
    return zlib.crc32(contents, zlib.crc32(key, group))
