"""Convert a tokenizer to keys of a GGUF file: the inverse of `llmd.chat.tokenizers.gguf.gguf_tokenizer`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.escaped_bytes import escaped
from llmd.chat.tokenizers.gguf.pre_tokenizer_names import name_of, pre_tokenizer_name
from llmd.chat.tokenizers.gguf.pre_tokenizers import PreTokenizer
from llmd.chat.tokenizers.gguf.sentencepiece_model import Algorithm, SentencePieceModel
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer
from llmd.chat.tokenizers.longest_match_tokenizer import LongestMatchTokenizer
from llmd.chat.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from llmd.chat.tokenizers.tiktoken_tokenizer import TiktokenTokenizer
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces
from llmd.chat.tokenizers.tokenizer import Tokenizer

Keys = dict[str, Any]
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
WITH_SCORES = ("llama", "t5")
"""Models whose tokens have scores."""
AS_DIRECTORY = "keep the model as a directory; llmd can serve it as it is"


class Token(msgspec.Struct, frozen=True):
    """A token as the file states it."""

    text: str
    kind: TokenKind = TokenKind.NORMAL
    score: float = 0.0


def vocabulary_keys(tokenizer: Tokenizer, size: int) -> Keys:
    """Return the keys that describe ``tokenizer``, for a model with embeddings of ``size`` tokens.

    Raises:
        TokenizerError: GGUF files cannot describe it.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        keys, tokens = _of_pieces(tokenizer)
    elif isinstance(tokenizer, HFTokenizer):
        keys, tokens = _of_form(tokenizer)
    elif isinstance(tokenizer, TiktokenTokenizer):
        keys, tokens = _of_ranks(tokenizer)
    elif isinstance(tokenizer, LongestMatchTokenizer):
        keys, tokens = {"model": "rwkv"}, _of_bytes(tokenizer)
    else:
        raise _refuse("is of a kind that GGUF files do not support")
    keys |= _listed(tokens, size, with_scores=keys["model"] in WITH_SCORES)
    keys |= _ends(tokenizer)
    return {f"{PREFIX}{name}": value for name, value in keys.items()}


def _listed(tokens: Mapping[int, Token], size: int, *, with_scores: bool) -> Keys:
    """Return the lists of tokens; an unused id gets a placeholder name, as in llama.cpp's files."""
    listed = [tokens.get(place) or Token(f"[PAD{place}]", TokenKind.UNUSED) for place in range(size)]
    scores = {"scores": np.array([token.score for token in listed], np.float32)} if with_scores else {}
    kinds = np.array([token.kind for token in listed], np.int32)
    return {"tokens": [token.text for token in listed], "token_type": kinds, **scores}


def _ends(tokenizer: Tokenizer) -> Keys:
    """Return the ids of BOS and EOS, and whether a text begins and ends with them."""
    vocabulary = tokenizer.vocabulary
    bos, eos = vocabulary.bos_id, next(iter(vocabulary.eos_ids), None)
    if vocabulary.prefix_ids not in {(), (bos,)} or vocabulary.suffix_ids not in {(), (eos,)}:
        raise _refuse("adds tokens other than BOS and EOS around a text")
    ids = {"bos_token_id": bos, "eos_token_id": eos}
    return {name: place for name, place in ids.items() if place is not None} | {
        "add_bos_token": bool(vocabulary.prefix_ids),
        "add_eos_token": bool(vocabulary.suffix_ids),
    }


def _of_pieces(tokenizer: SentencePieceTokenizer) -> tuple[Keys, dict[int, Token]]:
    """Convert a tokenizer that SentencePiece runs."""
    model = SentencePieceModel.parse(tokenizer.content())
    rows = zip(model.pieces, model.kinds, model.scores, strict=True)
    tokens = {place: Token(text, TokenKind(kind), score) for place, (text, kind, score) in enumerate(rows)}
    tokens |= {
        place: Token(added.content, _kind_of_added(tokenizer, place), tokens.get(place, Token("")).score)
        for place, added in tokenizer.added.items()
        if place != model.unknown_id
    }
    return {
        "model": "llama" if model.algorithm is Algorithm.BPE else "t5",
        "unknown_token_id": model.unknown_id,
        "add_space_prefix": tokenizer.prefixes_start,
        "remove_extra_whitespaces": model.removes_extra_spaces,
        **({"precompiled_charsmap": np.frombuffer(model.charsmap, np.uint8)} if model.charsmap else {}),
    }, tokens


def _kind_of_added(tokenizer: Tokenizer, place: int) -> TokenKind:
    return TokenKind.CONTROL if tokenizer.is_special(place) else TokenKind.USER_DEFINED


def _of_form(tokenizer: HFTokenizer) -> tuple[Keys, dict[int, Token]]:
    """Convert a tokenizer of the tokenizers library: byte-level BPE, or SentencePiece's BPE as merges."""
    form = tokenizer.form()
    model = form["model"]
    if model["type"] != "BPE":
        raise _refuse(f"is a {model['type']} model, which cannot be written to GGUF files")
    tokens = {place: Token(text) for text, place in model["vocab"].items()}
    added = {token["id"]: token["content"] for token in form["added_tokens"]}
    merges = [tuple(merge) for merge in model["merges"]]
    if model.get("byte_fallback"):
        keys, tokens = _spaced(tokenizer, tokens, merges, model)
    else:
        keys = _byte_level(pre_tokenizer_name(form), merges)
    return keys, tokens | {
        place: Token(text, _kind_of_added(tokenizer, place))
        for place, text in added.items()
        if tokens.get(place, Token("")).kind is not TokenKind.UNKNOWN
    }


def _of_ranks(tokenizer: TiktokenTokenizer) -> tuple[Keys, dict[int, Token]]:
    """Convert a tokenizer of tiktoken: ranks become merges. A word that is a token needs none, and merges
    make it as well if it was trained on such words.
    """
    signs = ByteLevelPieces().written
    tokens = {place: Token(signs(content)) for content, place in tokenizer.ranks.items()}
    merges = ((signs(left), signs(right)) for left, right in merges_of(tokenizer.ranks))
    specials = tokenizer.vocabulary.specials
    tokens |= {special.token_id: Token(special.text, TokenKind.CONTROL) for special in specials}
    names = (name_of(PreTokenizer((tokenizer.pattern,), whole_words=whole)) for whole in (True, False))
    return _byte_level(next(filter(None, names), None), merges), tokens


def _of_bytes(tokenizer: LongestMatchTokenizer) -> dict[int, Token]:
    """Convert a tokenizer of RWKV. A token that is also text stays text."""
    specials = tokenizer.vocabulary.specials
    tokens = {special.token_id: Token(special.text, TokenKind.CONTROL) for special in specials}
    return tokens | {place: Token(escaped(content)) for content, place in tokenizer.ids.items()}


def merges_of(ranks: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield every pair of tokens that form a token, ordered by the rank of that token.

    tiktoken merges the lowest rank first; other libraries need such a list.
    """
    for token in sorted(ranks, key=ranks.__getitem__):
        halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        pairs = [(left, right) for left, right in halves if left in ranks and right in ranks]
        yield from sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def _byte_level(name: str | None, merges: Iterable[tuple[str, ...]]) -> Keys:
    if name is None:
        raise _refuse("splits text into words in a way that has no name in GGUF files")
    listed = [" ".join(merge) for merge in merges]
    if not listed:
        raise _refuse("has no merges, and a GGUF file without merges counts as damaged")
    return {"model": "gpt2", "pre": name, "merges": listed}


def _spaced(
    tokenizer: HFTokenizer, tokens: Mapping[int, Token], merges: list[tuple[str, ...]], model: dict[str, Any]
) -> tuple[Keys, dict[int, Token]]:
    """Turn merges into scores: SentencePiece merges by highest score, so earlier merges score higher."""
    first = {"".join(merge): -float(rank) for rank, merge in reversed(list(enumerate(merges)))}
    lowest = -float(len(merges))
    unknown = tokenizer.token_id(model["unk_token"] or "<unk>")
    if unknown is None:
        raise _refuse("has no unknown token")
    scored = {
        place: Token(token.text, _kind(token.text, place, unknown), first.get(token.text, lowest))
        for place, token in tokens.items()
    }
    begins = tokenizer.encode("a", add_special=False)
    has_prefix = tokenizer.token_bytes(begins[0])[:1] == b" "
    return {
        "model": "llama",
        "unknown_token_id": unknown,
        "add_space_prefix": has_prefix,
        "remove_extra_whitespaces": False,
    }, scored


def _kind(text: str, place: int, unknown: int) -> TokenKind:
    if place == unknown:
        return TokenKind.UNKNOWN
    return TokenKind.BYTE if BYTE.fullmatch(text) else TokenKind.NORMAL


def _refuse(what: str) -> TokenizerError:
    return TokenizerError(f"the tokenizer {what}", hint=AS_DIRECTORY)
