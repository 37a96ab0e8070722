"""``tekken.json`` of Mistral's later models: tokens by rank, as in tiktoken, after the special tokens."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import read_json
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.tiktoken_tokenizer import TiktokenTokenizer, check_ids, check_ranks, describe
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig

# First special tokens of versions 3 and 7, if a file lists none. Source: github.com/mistralai/mistral-common.
OLDER_SPECIALS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip

_Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]


class _Token(msgspec.Struct, frozen=True):
    rank: int
    token_bytes: str


class _Special(msgspec.Struct, frozen=True):
    rank: int
    token_str: str


class _Config(msgspec.Struct, frozen=True):
    """How the vocabulary is used."""

    pattern: str
    default_vocab_size: _Size
    """All tokens, including special ones. The rest of ``vocab`` is unused."""
    default_num_special_tokens: _Size


class _File(msgspec.Struct, frozen=True):
    config: _Config
    vocab: list[_Token]
    special_tokens: list[_Special] | None = None


def load_tekken(path: Path, config: TokenizerConfig) -> TiktokenTokenizer:
    """Load the tokenizer of the file. Special tokens have the first ids; the others follow in rank order.

    Raises:
        TokenizerError: the file is damaged, ranks have gaps, a token occurs twice, or a byte has no token.
    """
    file = read_json(path, _File, error=TokenizerError)
    num_specials = file.config.default_num_special_tokens
    ranks = _read_ranks(path, file, num_specials)
    specials = _specials(path, file.special_tokens, num_specials)
    check_ids(path, ranks, {token.text: token.token_id for token in specials})
    vocabulary = describe(path, ranks, specials, config, bos="<s>", eos="</s>")
    return TiktokenTokenizer(vocabulary, ranks, path, file.config.pattern)


def _read_ranks(path: Path, file: _File, first_id: int) -> dict[bytes, int]:
    used = file.config.default_vocab_size - first_id
    if not 0 < used <= len(file.vocab):
        raise TokenizerError(
            f"{path} has {len(file.vocab)} tokens, but its configuration uses {used}",
            hint="the file is damaged or truncated; copy it again from its model",
        )
    tokens = file.vocab[:used]
    if any(token.rank != place for place, token in enumerate(tokens)):
        raise TokenizerError(f"{path}: ranks are not in order", hint="copy the file again from its model")
    try:
        ranks = {
            base64.b64decode(token.token_bytes, validate=True): first_id + token.rank for token in tokens
        }
    except (binascii.Error, ValueError) as exc:
        raise TokenizerError(
            f"{path}: a token is not base64: {exc}", hint="copy the file again from its model"
        ) from exc
    if len(ranks) < used:
        raise TokenizerError(f"{path}: a token occurs twice", hint="copy the file again from its model")
    check_ranks(path, ranks)
    return ranks


def _specials(path: Path, listed: Sequence[_Special] | None, number: int) -> tuple[SpecialToken, ...]:
    """Return the special tokens: as listed, or those of older files; ids without a name get a placeholder."""
    named = dict(enumerate(OLDER_SPECIALS)) if listed is None else {one.rank: one.token_str for one in listed}
    texts = [named.get(rank, f"<SPECIAL_{rank}>") for rank in range(number)]
    if any(not 0 <= rank < number for rank in named) or len(set(texts)) < number:
        raise TokenizerError(
            f"{path}: special tokens share a text, or have a rank outside 0..{number - 1}",
            hint="copy the file again from its model",
        )
    return tuple(SpecialToken(text, rank) for rank, text in enumerate(texts))
