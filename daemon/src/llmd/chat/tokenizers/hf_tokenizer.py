"""Tokenizers run by the tokenizers library: ``tokenizer.json`` and formats that are converted to it."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.pairs import PairFrame
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.token_bytes import PieceBytes
from llmd.chat.tokenizers.tokenizer import Tokenizer, Vocabulary
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig

# A private-use character that stands before a part that does not begin a text.
_BOUNDARY = "\U0010fffd"


class HFTokenizer(Tokenizer):
    """Runs two tokenizers over one model; ``_plain`` does not match special tokens in text.

    The library's own switch for this is mutable state, which threads cannot share.
    """

    def __init__(
        self, vocabulary: Vocabulary, tokenizer: tokenizers.Tokenizer, piece_bytes: PieceBytes
    ) -> None:
        super().__init__(vocabulary)
        self._tokenizer = tokenizer
        self._plain = _plain_copy(tokenizer, frozenset(token.text for token in vocabulary.specials))
        self._boundary_id = self._plain.token_to_id(_BOUNDARY)
        self._piece_bytes = piece_bytes
        added = tokenizer.get_added_tokens_decoder()
        self._added_bytes = {token_id: token.content.encode() for token_id, token in added.items()}

    def form(self) -> dict[str, Any]:
        """Return the content of a ``tokenizer.json`` of this tokenizer."""
        form: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return form

    def _encode(self, text: str, *, parse_special: bool, at_start: bool) -> list[int]:
        if parse_special:
            return _run(self._tokenizer, text)
        # Metaspace prepends a space only at the start of a text, so a boundary before the part prevents it.
        part = text if at_start else _BOUNDARY + text
        return [token_id for token_id in _run(self._plain, part) if token_id != self._boundary_id]

    def token_bytes(self, token_id: int) -> bytes:
        if token_id in self._added_bytes:
            return self._added_bytes[token_id]
        piece = self._tokenizer.id_to_token(token_id)
        return b"" if piece is None else self._piece_bytes(piece)

    def token_id(self, text: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(text)
        return found


def _run(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    # Only batches release the GIL, hence a batch of one: encoding 600 KB in a thread then blocks the others
    # for 11 ms instead of 1.3 s. The fast variant skips offsets, which take half of the time.
    return list(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids)


def _plain_copy(tokenizer: tokenizers.Tokenizer, special_texts: frozenset[str]) -> tokenizers.Tokenizer:
    copy = tokenizers.Tokenizer(tokenizer.model)
    if tokenizer.normalizer is not None:
        copy.normalizer = tokenizer.normalizer
    if tokenizer.pre_tokenizer is not None:
        copy.pre_tokenizer = tokenizer.pre_tokenizer
    # In id order, so that tokens outside the model's vocabulary get the same ids again. In runs, because each
    # call rebuilds the matcher of all added tokens.
    added = [token for _, token in sorted(tokenizer.get_added_tokens_decoder().items())]
    for is_special, run in groupby(added, key=lambda token: token.content in special_texts):
        (copy.add_special_tokens if is_special else copy.add_tokens)(list(run))
    copy.add_tokens([tokenizers.AddedToken(_BOUNDARY, normalized=False)])
    copy.encode_special_tokens = True
    return copy


def add_configured_tokens(tokenizer: tokenizers.Tokenizer, config: TokenizerConfig, path: Path) -> None:
    """Add to ``tokenizer`` the tokens that only ``config`` lists, and check that all listed ids match."""
    special = config.special_texts
    known = tokenizer.get_added_tokens_decoder()
    for token_id, token in sorted(config.added.items()):
        if token_id not in known or known[token_id].content != token.content:
            flags = {"lstrip": token.lstrip, "rstrip": token.rstrip, "single_word": token.single_word}
            added = tokenizers.AddedToken(token.content, normalized=token.normalized, **flags)
            (tokenizer.add_special_tokens if token.content in special else tokenizer.add_tokens)([added])
        check_token_id(tokenizer, token.content, token_id, path)
    listed = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    named = [text for text in sorted(special - listed) if tokenizer.token_to_id(text) is not None]
    tokenizer.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in named])


def check_token_id(tokenizer: tokenizers.Tokenizer, text: str, token_id: int, path: Path) -> None:
    actual = tokenizer.token_to_id(text)
    if actual != token_id:
        raise TokenizerError(
            f"{path}: token {text!r} is listed with id {token_id}, but its id in the vocabulary is {actual}",
            hint="the tokenizer files contradict each other; copy all of them from the same model",
        )


def describe(
    tokenizer: tokenizers.Tokenizer, config: TokenizerConfig, path: Path, *, strips_leading_space: bool
) -> Vocabulary:
    """Return the vocabulary of a complete tokenizer; ``config`` names BOS and EOS.

    Raises:
        TokenizerError: a named BOS or EOS is not in the vocabulary.
    """
    added = tokenizer.get_added_tokens_decoder()
    texts = config.special_texts
    prefix, suffix = _written_around(tokenizer)
    bos_id = _named_id(tokenizer, config, "bos_token", path)
    if config.add_bos is not None:
        prefix = (bos_id,) if config.add_bos and bos_id is not None else ()
    eos_id = _named_id(tokenizer, config, "eos_token", path)
    if config.add_eos and eos_id is not None:
        suffix = (eos_id,)
    return Vocabulary(
        size=max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1,
        bos_id=prefix[0] if bos_id is None and prefix else bos_id,
        eos_ids=() if eos_id is None else (eos_id,),
        prefix_ids=prefix,
        suffix_ids=suffix,
        pair=_written_around_pair(tokenizer),
        specials=tuple(
            SpecialToken(token.content, token_id, token.lstrip, token.rstrip)
            for token_id, token in sorted(added.items())
            if token.special or token.content in texts
        ),
        strips_leading_space=strips_leading_space,
    )


def _named_id(tokenizer: tokenizers.Tokenizer, config: TokenizerConfig, key: str, path: Path) -> int | None:
    text = config.name(key)
    token_id: int | None = tokenizer.token_to_id(text) if text is not None else None
    if text is not None and token_id is None:
        raise TokenizerError(
            f"{path.parent}: {key} is {text!r}, which is not in the vocabulary of {path.name}",
            hint="correct tokenizer_config.json or copy the tokenizer files from the same model",
        )
    return token_id


def _written_around(tokenizer: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids that the post-processor adds before and after a text."""
    marked = tokenizer.encode("a", add_special_tokens=True)
    mask = marked.special_tokens_mask
    before, after = _leading_ones(mask), _leading_ones(mask[::-1])
    return tuple(marked.ids[:before]), tuple(marked.ids[len(mask) - after :])


def _written_around_pair(tokenizer: tokenizers.Tokenizer) -> PairFrame | None:
    """Return what the post-processor adds around two texts, and the token types that it assigns."""
    marked = tokenizer.encode("a", "a", add_special_tokens=True)
    texts = marked.sequence_ids
    if not {0, 1} <= set(texts):
        return None
    first, second = texts.index(0), texts.index(1)
    first_end = len(texts) - texts[::-1].index(0)
    second_end = len(texts) - texts[::-1].index(1)
    type_1 = marked.type_ids.index(1) if 1 in marked.type_ids else None
    return PairFrame(
        before=tuple(marked.ids[:first]),
        between=tuple(marked.ids[first_end:second]),
        after=tuple(marked.ids[second_end:]),
        separators_of_first=None if type_1 is None else type_1 - first_end,
    )


def _leading_ones(mask: list[int]) -> int:
    return mask.index(0) if 0 in mask else 0
