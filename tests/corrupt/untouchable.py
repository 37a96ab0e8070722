"""A memory map that proves that nobody looked at a weight."""

from __future__ import annotations

from typing import Any, BinaryIO


class UntouchableMap:
    """Has no buffer: making an array of it raises TypeError."""

    def close(self) -> None:
        pass


def map_untouchable(file: BinaryIO) -> Any:
    """A `llmd.models.mapped_file.Mapper` for opening files whose tensor data must not be touched."""
    return UntouchableMap()
