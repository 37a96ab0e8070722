"""The interface of tokenizers: text to token ids and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import msgspec

from llmd.api.errors import RequestError, TokenizerError
from llmd.chat.tokenizers.pairs import PairFrame, TokenPair, join
from llmd.chat.tokenizers.panics import panics_refused
from llmd.chat.tokenizers.special_tokens import SpecialToken, SpecialTokenSplitter


class Vocabulary(msgspec.Struct, frozen=True):
    """The constant properties of a tokenizer."""

    size: int
    """The largest id + 1."""
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    prefix_ids: tuple[int, ...] = ()
    """Start every text that is not a continuation: BOS, or nothing."""
    suffix_ids: tuple[int, ...] = ()
    """End a complete text: EOS, ``[SEP]``, or nothing."""
    pair: PairFrame | None = None
    """What surrounds two texts; None if the files do not say."""
    specials: tuple[SpecialToken, ...] = ()
    """Control tokens: matched in text on request, and left out of answers."""
    strips_leading_space: bool = False
    """Encoding adds a leading space that decoding removes (SentencePiece's dummy prefix)."""


class Tokenizer(ABC):
    """Base class of tokenizers. Thread-safe: nothing changes after construction."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.specials = SpecialTokenSplitter(vocabulary.specials)
        """Splits text at control tokens."""
        self._special_ids = frozenset(token.token_id for token in vocabulary.specials)

    @property
    def vocab_size(self) -> int:
        return self.vocabulary.size

    @property
    def bos_id(self) -> int | None:
        return self.vocabulary.bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.vocabulary.eos_ids

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """Return the ids of ``text``.

        ``add_special`` adds BOS if this tokenizer uses it, unless the text begins with it. EOS is never
        added, since prompts are to be continued. With ``parse_special`` False, special tokens in the text
        stay plain text, as they must in users' input.

        Raises:
            RequestError: the text contains lone surrogates, which are not characters.
            TokenizerError: the library that runs the tokenizer fails.
        """
        ids = self.encode_part(text, parse_special=parse_special, at_start=True)
        return self.with_prefix(ids) if add_special else ids

    def encode_whole(self, text: str) -> list[int]:
        """Return the ids of a text to embed or rank, with all that the tokenizer adds; raise as `encode`.

        Special tokens in it count as such: a text can only affect its own result.
        """
        ids = self.encode_part(text, parse_special=True, at_start=True)
        return [*self.vocabulary.prefix_ids, *ids, *self.vocabulary.suffix_ids]

    def encode_pair(self, first: str, second: str, max_len: int | None = None) -> TokenPair:
        """Encode two texts as one of at most ``max_len`` tokens, with all that the tokenizer adds.

        Raises:
            RequestError: a text contains lone surrogates, or this tokenizer does not support pairs.
            TokenizerError: the library that runs the tokenizer fails.
        """
        if self.vocabulary.pair is None:
            raise RequestError(
                "the tokenizer of this model does not encode pairs of texts",
                hint="use a reranker that does, a cross-encoder",
            )
        ids, more = (self.encode_part(text, parse_special=True, at_start=True) for text in (first, second))
        return join(self.vocabulary.pair, ids, more, max_len)

    def encode_part(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        """Return the ids of a part of a text, without BOS. ``at_start`` False: other parts precede it."""
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            raise RequestError(f"the text is not valid Unicode: {exc.reason}", hint="send UTF-8") from exc
        with panics_refused("the tokenizer of the model"):
            return self._encode(text, parse_special=parse_special, at_start=at_start) if text else []

    def with_prefix(self, ids: list[int]) -> list[int]:
        """Return ``ids`` with BOS before them, unless it is there already."""
        prefix = list(self.vocabulary.prefix_ids)
        return ids if ids[: len(prefix)] == prefix else prefix + ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """Return the text of ``ids`` as a complete text; invalid UTF-8 becomes U+FFFD."""
        kept = b"".join(self.token_bytes(i) for i in ids if not (skip_special and self.is_special(i)))
        if self.vocabulary.strips_leading_space:
            kept = kept.removeprefix(b" ")
        return kept.decode("utf-8", "replace")

    def is_special(self, token_id: int) -> bool:
        return token_id in self._special_ids

    def token_text(self, token_id: int) -> str:
        """Return the token as text; partial characters become U+FFFD."""
        return self.token_bytes(token_id).decode("utf-8", "replace")

    @abstractmethod
    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]: ...

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """Return the raw bytes of a token, perhaps half a character; empty for ids outside the vocabulary."""

    @abstractmethod
    def token_id(self, text: str) -> int | None:
        """Return the id of the token ``text``, as the vocabulary writes it; None if there is none."""


def check_vocab_size(tokenizer: Tokenizer, model_vocab_size: int) -> None:
    """Check that the model has an embedding row for every id of the tokenizer.

    Raises:
        TokenizerError: the tokenizer's largest id is not below ``model_vocab_size``.
    """
    if tokenizer.vocab_size > model_vocab_size:
        raise TokenizerError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, but the model has {model_vocab_size} embeddings",
            hint="tokenizer and weights belong to different models; copy both from the same model",
        )
