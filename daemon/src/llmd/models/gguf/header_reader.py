"""Read the numbers and strings of a GGUF header, each checked against the length of the file."""

from __future__ import annotations

import reprlib
from struct import Struct
from typing import BinaryIO

from llmd.api.errors import CheckpointError
from llmd.models.files import file_size
from llmd.models.json_file import DAMAGED

FIRST_BYTES = 1 << 20
MAX_HEADER_BYTES = 1 << 28
"""More than any vocabulary needs; a longer string or list counts as damage."""
U32 = Struct("<I")
U64 = Struct("<Q")


class HeaderReader:
    """Reads a file from its first byte. ``at`` is the next offset; ``content`` has the bytes read so far."""

    def __init__(self, file: BinaryIO, *, name: str) -> None:
        self.name = name
        self.at = 0
        self.content = b""
        self.file_bytes = file_size(file)
        self._file = file

    def take(self, num_bytes: int) -> int:
        """Read ``num_bytes`` into ``content`` and return where they begin.

        Raises:
            CheckpointError: the file is too short, or the header would be too long.
        """
        begin = self.at
        self._read_to(begin + num_bytes)
        self.at = begin + num_bytes
        return begin

    def u32(self) -> int:
        begin = self.take(U32.size)
        number: int = U32.unpack_from(self.content, begin)[0]
        return number

    def u64(self) -> int:
        begin = self.take(U64.size)
        number: int = U64.unpack_from(self.content, begin)[0]
        return number

    def count(self, *, least_bytes: int) -> int:
        """Read the number of items that follow, each of at least ``least_bytes``."""
        number = self.u64()
        self._check_end(self.at + number * least_bytes)
        return number

    def string(self) -> str:
        begin = self.take(self.u64())
        return decode_text(self.content[begin : self.at], file=self.name)

    def skip_strings(self, count: int) -> None:
        """Skip ``count`` strings, one at a time, because their total length is not stated."""
        length_of, at, have = U64.unpack_from, self.at, len(self.content)
        for _ in range(count):
            if at + U64.size > have:
                have = self._read_to(at + U64.size)
            at += U64.size + length_of(self.content, at)[0]
        self._read_to(at)
        self.at = at

    def _read_to(self, end: int) -> int:
        """Read at least up to ``end``; return how many bytes are in ``content``."""
        have = len(self.content)
        if end > have:
            self._check_end(end)
            # Read ever larger pieces, so that ``content`` is rarely copied.
            self.content += self._file.read(max(end - have, have, FIRST_BYTES))
            have = len(self.content)
            if end > have:
                raise self._truncated(end)
        return have

    def _check_end(self, end: int) -> None:
        if end > self.file_bytes:
            raise self._truncated(end)
        if end > MAX_HEADER_BYTES:
            raise CheckpointError(
                f"states a header of at least {end} bytes, more than {MAX_HEADER_BYTES}",
                file=self.name,
                hint=DAMAGED,
            )

    def _truncated(self, end: int) -> CheckpointError:
        return CheckpointError(
            f"truncated: the header needs at least {end} bytes, the file ends after {self.file_bytes}",
            file=self.name,
            hint=DAMAGED,
        )


def decode_text(content: bytes, *, file: str) -> str:
    """Decode a string of a file.

    Raises:
        CheckpointError: it is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(
            f"the text {reprlib.repr(content)} is not UTF-8", file=file, hint=DAMAGED
        ) from error
