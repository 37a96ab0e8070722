"""A vocabulary as the file that SentencePiece reads: its ModelProto, in the wire format of protocol buffers.

Source: sentencepiece_model.proto of github.com/google/sentencepiece; protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum

import msgspec


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
    """Pieces by id, their scores and kinds, and what is done to text before it is cut.

    SentencePiece demands the id of the piece that stands for what no piece has.
    """

    algorithm: Algorithm
    pieces: Sequence[str]
    scores: Sequence[float]
    kinds: Sequence[int]
    unknown_id: int
    adds_dummy_prefix: bool
    removes_extra_spaces: bool
    charsmap: bytes = b""

    def serialized(self) -> bytes:
        """The bytes of the ModelProto."""
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
