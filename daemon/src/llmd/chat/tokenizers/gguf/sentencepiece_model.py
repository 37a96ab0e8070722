"""Read and write SentencePiece's model file: a ModelProto in the wire format of protocol buffers.

Source: sentencepiece_model.proto of github.com/google/sentencepiece;
protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Self

import msgspec

_FIXED_BYTES: Mapping[int, int] = {1: 8, 5: 4}
"""Sizes of fixed-width numbers, by wire type."""


class PieceKind(IntEnum):
    """``SentencePiece.Type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Algorithm(IntEnum):
    """``TrainerSpec.ModelType``."""

    UNIGRAM = 1
    BPE = 2


class SentencePieceModel(msgspec.Struct, frozen=True):
    """Pieces with scores and kinds, and how text is normalized."""

    algorithm: Algorithm
    pieces: Sequence[str]
    """By id, like ``scores`` and ``kinds``."""
    scores: Sequence[float]
    kinds: Sequence[int]
    unknown_id: int
    """SentencePiece requires an unknown piece."""
    adds_dummy_prefix: bool
    removes_extra_spaces: bool
    charsmap: bytes = b""

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Parse a ModelProto without checks: SentencePiece itself must have accepted it."""
        fields = list(_fields(content))
        rows = [dict(_fields(value)) for field, value in fields if field == 1]
        trainer, normalizer = (
            dict(_fields(b"".join(value for field, value in fields if field == wanted))) for wanted in (2, 3)
        )
        return cls(
            algorithm=Algorithm(trainer.get(3, Algorithm.UNIGRAM)),
            pieces=[row[1].decode() for row in rows],
            scores=[struct.unpack("<f", row[2])[0] if 2 in row else 0.0 for row in rows],
            kinds=[row.get(3, PieceKind.NORMAL) for row in rows],
            unknown_id=trainer.get(40, 0),
            adds_dummy_prefix=bool(normalizer.get(3, True)),
            removes_extra_spaces=bool(normalizer.get(4, True)),
            charsmap=normalizer.get(2, b""),
        )

    def serialized(self) -> bytes:
        """Return the bytes of the ModelProto."""
        rows = zip(self.pieces, self.scores, self.kinds, strict=True)
        parts = [
            _message(1, _text(1, piece) + _float(2, score) + _int(3, kind)) for piece, score, kind in rows
        ]
        return b"".join((*parts, _message(2, self._trainer()), _message(3, self._normalizer())))

    def _trainer(self) -> bytes:
        has_bytes = PieceKind.BYTE in self.kinds
        return _int(3, self.algorithm) + _int(35, has_bytes) + _int(40, self.unknown_id)

    def _normalizer(self) -> bytes:
        return (
            _text(1, "identity")
            + _message(2, self.charsmap)
            + _int(3, self.adds_dummy_prefix)
            + _int(4, self.removes_extra_spaces)
            + _int(5, True)
        )


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message by number: varints as integers, other wire types as bytes."""
    at = 0
    while at < len(content):
        key, at = _read_varint(content, at)
        field, wire_type = key >> 3, key & 7
        if wire_type == 0:
            number, at = _read_varint(content, at)
            yield field, number
            continue
        length, at = (_FIXED_BYTES[wire_type], at) if wire_type in _FIXED_BYTES else _read_varint(content, at)
        yield field, content[at : at + length]
        at += length


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the number at ``at``, and where it ends."""
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _float(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", number)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
