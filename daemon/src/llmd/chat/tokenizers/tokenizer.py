"""The contract of a tokenizer: text to token ids and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import msgspec

from llmd.api.errors import RequestError, TokenizerError
from llmd.chat.tokenizers.pairs import PairFrame, TokenPair, join
from llmd.chat.tokenizers.panics import panics_refused
from llmd.chat.tokenizers.special_tokens import SpecialToken


class Vocabulary(msgspec.Struct, frozen=True):
    """What is fixed about a tokenizer.

    ``size`` is the largest id + 1. ``prefix_ids`` begin every text that is not a continuation: BOS, or nothing.
    ``suffix_ids`` end a text that nobody is to continue: EOS, ``[SEP]``, or nothing.
    ``pair`` is what stands around two texts, None where nobody said.
    ``specials`` are the control tokens: matched in text where that is asked for, and left out of answers.
    ``strips_leading_space``: text begins with a space that encoding put there and decoding takes away
    (SentencePiece's dummy prefix).
    """

    size: int
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    prefix_ids: tuple[int, ...] = ()
    suffix_ids: tuple[int, ...] = ()
    pair: PairFrame | None = None
    specials: tuple[SpecialToken, ...] = ()
    strips_leading_space: bool = False


class Tokenizer(ABC):
    """A tokenizer of any kind. Safe for use from several threads; nothing changes after construction."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
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
        """The ids of ``text``.

        ``add_special`` writes BOS where this tokenizer has it, once: a text that begins with it keeps one. EOS is
        never added, since prompts are there to be continued. ``parse_special`` False keeps the text of special
        tokens plain, as it must be in what users type.

        Raises:
            RequestError: the text holds lone surrogates, which are no characters.
            TokenizerError: the library that runs the tokenizer fails.
        """
        ids = self.encode_part(text, parse_special=parse_special, at_start=True)
        return self.with_prefix(ids) if add_special else ids

    def encode_whole(self, text: str) -> list[int]:
        """The ids of a text that is embedded or judged, with all that the tokenizer writes around it; raises as `encode`.

        Special tokens in it are read as such: whatever a text says, nothing follows from it but its own vector.
        """
        ids = self.encode_part(text, parse_special=True, at_start=True)
        return [*self.vocabulary.prefix_ids, *ids, *self.vocabulary.suffix_ids]

    def encode_pair(self, first: str, second: str, max_len: int | None = None) -> TokenPair:
        """Two texts as one of at most ``max_len`` tokens, with all that the tokenizer writes around them.

        Raises:
            RequestError: a text holds lone surrogates, or this tokenizer was not made for pairs.
            TokenizerError: the library that runs the tokenizer fails.
        """
        if self.vocabulary.pair is None:
            raise RequestError(
                "the tokenizer of this model does not join two texts",
                hint="ask a model that ranks pairs of texts",
            )
        ids, more = (self.encode_part(text, parse_special=True, at_start=True) for text in (first, second))
        return join(self.vocabulary.pair, ids, more, max_len)

    def encode_part(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        """The ids of a part of a text, without BOS. ``at_start`` False: other parts stand before it."""
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            raise RequestError(f"the text is not valid Unicode: {exc.reason}", hint="send UTF-8") from exc
        with panics_refused("the tokenizer of the model"):
            return self._encode(text, parse_special=parse_special, at_start=at_start) if text else []

    def with_prefix(self, ids: list[int]) -> list[int]:
        """``ids`` with BOS before them, unless it is there already."""
        prefix = list(self.vocabulary.prefix_ids)
        return ids if ids[: len(prefix)] == prefix else prefix + ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """The text of ``ids``, taken as a whole text; what is not UTF-8 becomes U+FFFD."""
        kept = b"".join(self.token_bytes(i) for i in ids if not (skip_special and self.is_special(i)))
        if self.vocabulary.strips_leading_space:
            kept = kept.removeprefix(b" ")
        return kept.decode("utf-8", "replace")

    def is_special(self, token_id: int) -> bool:
        return token_id in self._special_ids

    def token_text(self, token_id: int) -> str:
        """The token as text; U+FFFD stands for what is only a part of a character."""
        return self.token_bytes(token_id).decode("utf-8", "replace")

    @abstractmethod
    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]: ...

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """The raw bytes of a token, perhaps a part of a character; empty for ids outside the vocabulary."""

    @abstractmethod
    def token_id(self, text: str) -> int | None:
        """The id of the token that is written ``text`` in the vocabulary, None where there is none."""


def check_vocab_size(tokenizer: Tokenizer, model_vocab_size: int) -> None:
    """Refuse a tokenizer that can produce ids for which the model has no embedding row.

    Raises:
        TokenizerError: the tokenizer's largest id is not below ``model_vocab_size``.
    """
    if tokenizer.vocab_size > model_vocab_size:
        raise TokenizerError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model has embeddings for {model_vocab_size}",
            hint="tokenizer and weights are of different models; copy both from the same one",
        )
