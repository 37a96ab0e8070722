"""Decode the pieces of a vocabulary to the bytes that they stand for."""

from __future__ import annotations

import re
from typing import Protocol

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_PRINTABLE = (range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100))


class PieceBytes(Protocol):
    """Returns the bytes that a piece of the vocabulary stands for."""

    def __call__(self, piece: str, /) -> bytes: ...


class ByteLevelPieces:
    """Pieces in GPT-2's alphabet, in which each byte is one visible character.

    Printable Latin-1 bytes stand for themselves; the others become the characters from U+0100 on, in order.
    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2.
    """

    def __init__(self) -> None:
        visible = {byte for span in _PRINTABLE for byte in span}
        self._bytes = {chr(byte): bytes([byte]) for byte in visible}
        hidden = (byte for byte in range(256) if byte not in visible)
        self._bytes |= {chr(0x100 + place): bytes([byte]) for place, byte in enumerate(hidden)}
        self._signs = {byte[0]: sign for sign, byte in self._bytes.items()}

    def __call__(self, piece: str) -> bytes:
        return b"".join(self._bytes.get(char) or char.encode() for char in piece)

    def written(self, content: bytes) -> str:
        """Return the piece that stands for these bytes."""
        return content.decode("latin-1").translate(self._signs)


class SpacedPieces:
    """Pieces of SentencePiece: U+2581 is a space; with ``byte_fallback``, ``<0x0A>`` is a byte.

    Source: Kudo & Richardson 2018, "SentencePiece: A simple and language independent subword tokenizer".
    """

    def __init__(self, *, byte_fallback: bool) -> None:
        self._byte_fallback = byte_fallback

    def __call__(self, piece: str) -> bytes:
        match = _BYTE_PIECE.fullmatch(piece) if self._byte_fallback else None
        return bytes([int(match.group(1), 16)]) if match else piece.replace("▁", " ").encode()


class WordPieces:
    """Pieces of BERT: a piece with ``prefix`` continues a word, others begin one after a space.

    Source: Schuster & Nakajima 2012, "Japanese and Korean Voice Search".
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __call__(self, piece: str) -> bytes:
        goes_on = self._prefix and piece.startswith(self._prefix)
        return piece.removeprefix(self._prefix).encode() if goes_on else b" " + piece.encode()
