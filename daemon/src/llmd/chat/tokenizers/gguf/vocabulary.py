"""Read and check the vocabulary in the metadata of a GGUF file.

Source: docs/gguf.md of github.com/ggml-org/ggml, section "Tokenizer".
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np

from llmd.api.errors import TokenizerError

PREFIX = "tokenizer.ggml."
_ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "eot": "eot_token_id",
    "eom": "eom_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",
    "cls": "cls_token_id",
}
"""Keys of token ids that affect text; "seperator" is misspelt in the format."""
_SWITCHES = (
    "add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces",
    "normalizer.lowercase", "normalizer.strip_accents",
)  # fmt: skip
MAX_SCORE = float(np.finfo(np.float32).max)
_HINT = "the file is damaged or was made by an unusual converter; get another copy"


class TokenKind(IntEnum):
    """``token_type`` of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class GgufVocabulary(msgspec.Struct, frozen=True):
    """What a file states about its tokenizer."""

    file: str
    architecture: str
    model: str
    pre: str
    tokens: list[str]
    """By id; an empty text is an unused id."""
    kinds: list[int]
    """By id, as ``scores``."""
    scores: list[float]
    merges: list[str]
    ids: dict[str, int]
    """Ids of special tokens by role."""
    switches: dict[str, bool]
    """The booleans that the file states, by the last part of their keys."""
    charsmap: bytes = b""

    def of_kind(self, *kinds: TokenKind) -> dict[int, str]:
        """Return the non-empty tokens of some kinds by id."""
        return {
            place: self.tokens[place]
            for place, kind in enumerate(self.kinds)
            if kind in kinds and self.tokens[place]
        }

    def error(self, message: str, hint: str = _HINT) -> TokenizerError:
        """Return an error about this file's tokenizer."""
        return TokenizerError(f"{self.file}: {message}", hint=hint)


def read_vocabulary(metadata: Mapping[str, Any], file: str) -> GgufVocabulary:
    """Read the vocabulary in the metadata of ``file``.

    Raises:
        TokenizerError: it is missing, or values contradict each other.
    """
    source = _Values(metadata, file)
    tokens = source.texts("tokens")
    if not tokens:
        raise source.error(f"there is no list {PREFIX}tokens", "use a GGUF file that contains its tokenizer")
    size = len(tokens)
    kinds = source.numbers("token_type", "iu", size).tolist() or [TokenKind.NORMAL] * size
    scores = source.numbers("scores", "fi", size)
    if not np.all(np.abs(scores) <= MAX_SCORE):
        raise source.error(f"{PREFIX}scores has a value that is not a finite 32-bit float")
    charsmap = source.numbers("precompiled_charsmap", "iu")
    vocabulary = GgufVocabulary(
        file=file,
        architecture=str(metadata.get("general.architecture", "")),
        model=source.text("model"),
        pre=source.text("pre"),
        tokens=tokens,
        kinds=kinds,
        scores=scores.tolist() or [0.0] * size,
        merges=source.texts("merges"),
        ids=source.ids(size),
        switches=source.switches(),
        charsmap=charsmap.astype(np.uint8).tobytes(),
    )
    _check_unique(vocabulary)
    return vocabulary


def _check_unique(vocabulary: GgufVocabulary) -> None:
    texts = set(vocabulary.tokens)
    if len(texts) == len(vocabulary.tokens):
        return
    seen: set[str] = {""}
    for place, text in enumerate(vocabulary.tokens):
        if text and text in seen:
            raise vocabulary.error(f"token {place} is {text!r}, which is also an earlier token")
        seen.add(text)


class _Values:
    """Reads typed values of the metadata by the last part of their keys."""

    def __init__(self, metadata: Mapping[str, Any], file: str) -> None:
        self._metadata = metadata
        self._file = file

    def error(self, message: str, hint: str = _HINT) -> TokenizerError:
        return TokenizerError(f"{self._file}: {message}", hint=hint)

    def text(self, key: str) -> str:
        value = self._metadata.get(PREFIX + key, "")
        if not isinstance(value, str):
            raise self._wrong(key, value, "a string")
        return value

    def texts(self, key: str) -> list[str]:
        value = self._metadata.get(PREFIX + key, [])
        if not (isinstance(value, list) and set(map(type, value)) <= {str}):
            raise self._wrong(key, value, "a list of strings")
        return value

    def numbers(self, key: str, kinds: str, count: int | None = None) -> np.ndarray[Any, Any]:
        """Return an array of one of NumPy's ``kinds`` and of ``count`` entries; empty without the key."""
        value = self._metadata.get(PREFIX + key)
        if value is None:
            return np.empty(0)
        if not (isinstance(value, np.ndarray) and value.dtype.kind in kinds):
            raise self._wrong(key, value, f"a list of {'numbers' if 'f' in kinds else 'integers'}")
        if count is not None and len(value) != count:
            raise self.error(f"{PREFIX}{key} has {len(value)} entries for {count} tokens")
        return value

    def ids(self, size: int) -> dict[str, int]:
        """Return the ids of special tokens by role; reject ids beyond the vocabulary."""
        found = {role: self._metadata.get(PREFIX + key) for role, key in _ROLES.items()}
        stated = {role: value for role, value in found.items() if value is not None}
        for role, value in stated.items():
            if type(value) is not int or not 0 <= value < size:
                raise self._wrong(_ROLES[role], value, f"an id below {size}")
        return stated

    def switches(self) -> dict[str, bool]:
        """Return the booleans that the file states; reject other types."""
        stated = {key: self._metadata.get(PREFIX + key) for key in _SWITCHES}
        for key, value in stated.items():
            if not isinstance(value, bool | None):
                raise self._wrong(key, value, "true or false")
        return {key: value for key, value in stated.items() if value is not None}

    def _wrong(self, key: str, value: object, expected: str) -> TokenizerError:
        return self.error(f"{PREFIX}{key} is {reprlib.repr(value)}, not {expected}")
