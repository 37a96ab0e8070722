"""``tokenizer.json``: the tokenizers library's own format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import parse_json, read_file
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer, add_configured_tokens, check_token_id, describe
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces, PieceBytes, SpacedPieces, WordPieces
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig


class _Added(msgspec.Struct, frozen=True):
    id: int
    content: str


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int] | list[tuple[str, float]]
    type: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None


class _File(msgspec.Struct, frozen=True):
    model: _Model
    added_tokens: list[_Added] = []
    decoder: dict[str, Any] | None = None


def load_tokenizer_json(path: Path, config: TokenizerConfig) -> HFTokenizer:
    """Load the tokenizer in ``path``, with what ``config`` adds.

    Raises:
        TokenizerError: the file is damaged, contradicts itself or ``config``, or llmd cannot decode its kind.
    """
    content = read_file(path, error=TokenizerError)
    form = parse_json(path, content, _File, error=TokenizerError)
    _check_ids(form, path)
    _check_marks(form.model, path)
    tokenizer = _parse(path, content)
    # Left over from training; they would truncate or pad prompts.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for token in form.added_tokens:
        check_token_id(tokenizer, token.content, token.id, path)
    add_configured_tokens(tokenizer, config, path)
    steps = _decoder_steps(form.decoder)
    strips = any(_strips_leading_space(step) for step in steps)
    vocabulary = describe(tokenizer, config, path, strips_leading_space=strips)
    return HFTokenizer(vocabulary, tokenizer, _piece_bytes(steps, path))


def _check_ids(form: _File, path: Path) -> None:
    ids = list(form.model.vocab.values()) if isinstance(form.model.vocab, dict) else []
    added = [token.id for token in form.added_tokens]
    if len(set(ids)) != len(ids) or len(set(added)) != len(added):
        raise TokenizerError(
            f"{path} gives one id to several tokens", hint="copy the file again from its model"
        )


def _check_marks(model: _Model, path: Path) -> None:
    """Reject marks of word parts outside WordPiece: they would be decoded wrongly, or abort the process."""
    is_word_piece = model.type == "WordPiece"
    for mark in (None if is_word_piece else model.continuing_subword_prefix, model.end_of_word_suffix):
        if mark:
            raise TokenizerError(
                f"{path}: its pieces mark the parts of words with {mark[:20]!r}, which llmd does not support",
                hint="language models do not use such marks; check that this is the model's file",
            )


def _parse(path: Path, content: bytes) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_buffer(content)
    except Exception as exc:
        raise TokenizerError(
            f"{path} is not a tokenizer that can be run: {exc}",
            hint="the file is damaged or needs a newer tokenizers library; copy it again or upgrade llmd",
        ) from exc


def _decoder_steps(decoder: dict[str, Any] | None) -> list[dict[str, Any]]:
    if decoder is None:
        return []
    steps = decoder.get("decoders") if decoder.get("type") == "Sequence" else [decoder]
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _piece_bytes(steps: list[dict[str, Any]], path: Path) -> PieceBytes:
    types = {str(step.get("type")) for step in steps}
    if "ByteLevel" in types:
        return ByteLevelPieces()
    if "WordPiece" in types:
        return WordPieces(
            next(str(step.get("prefix", "##")) for step in steps if step["type"] == "WordPiece")
        )
    if types & {"Metaspace", "ByteFallback", "Replace"}:
        return SpacedPieces(byte_fallback="ByteFallback" in types)
    raise TokenizerError(
        f"{path}: pieces are joined by {sorted(types) or 'no decoder'}, which llmd does not support",
        hint="models use a byte-level, a SentencePiece or a WordPiece decoder; check that this is the model's file",
    )


def _strips_leading_space(step: dict[str, Any]) -> bool:
    if step.get("type") == "WordPiece":
        return True
    if step.get("type") == "Strip":
        return step.get("content") == " " and bool(step.get("start"))
    if step.get("type") == "Metaspace":
        return (
            step.get("prepend_scheme", "always") != "never"
            and step.get("add_prefix_space", True) is not False
        )
    return False
