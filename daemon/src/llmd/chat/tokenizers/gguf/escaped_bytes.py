"""GGUF vocabularies of RWKV's models (``rwkv``): tokens of any bytes, some written as escapes."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from llmd.chat.tokenizers.gguf.roles import vocabulary_of
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.longest_match_tokenizer import LongestMatchTokenizer
from llmd.chat.tokenizers.tiktoken_tokenizer import check_ranks

_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.)|$)", re.DOTALL)
_SHORT = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def load_escaped_bytes(stated: GgufVocabulary) -> LongestMatchTokenizer:
    """Load the tokenizer of a vocabulary.

    Ordinary tokens stay ordinary, whatever their roles: in these files, an empty line ends answers.

    Raises:
        TokenizerError: an escape is incomplete, two tokens are the same bytes, or a byte has no token.
    """
    ids: dict[bytes, int] = {}
    for place, text in stated.of_kind(TokenKind.NORMAL, TokenKind.USER_DEFINED).items():
        token = unescaped(stated, text)
        if token in ids:
            raise stated.error(f"token {place} is {text!r}, which is also token {ids[token]}")
        ids[token] = place
    check_ranks(Path(stated.file), ids)
    vocabulary = vocabulary_of(stated, adds_bos=False)
    special = stated.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
    kept = tuple(token for token in vocabulary.specials if token.token_id in special)
    return LongestMatchTokenizer(structs.replace(vocabulary, specials=kept), ids)


def escaped(token: bytes) -> str:
    """Return how files write a token: as Python writes bytes, without the marks around them."""
    return repr(token)[2:-1]


def unescaped(stated: GgufVocabulary, text: str) -> bytes:
    """Return the bytes that a token stands for. A backslash stands before what it escapes.

    Raises:
        TokenizerError: an escape is incomplete.
    """

    def meant(found: re.Match[bytes]) -> bytes:
        number, char = found.groups()
        if number is not None:
            return bytes([int(number, 16)])
        if char is None or char == b"x":
            raise stated.error(f"the token {text!r} ends within an escape")
        return _SHORT.get(char, char)

    return _ESCAPE.sub(meant, text.encode())
