"""Encode a rendered prompt: special tokens of the template become tokens, those typed by users stay text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from llmd.chat.templates.literals import RenderedPrompt
from llmd.chat.tokenizers.tokenizer import Tokenizer


class _Part(msgspec.Struct, frozen=True):
    text: str
    is_special: bool = False
    literal: bool = False


def encode_prompt(tokenizer: Tokenizer, prompt: RenderedPrompt) -> list[int]:
    """Return the ids of a prompt, with one BOS if the tokenizer adds it, even if the template wrote it too.

    A prompt without literals is encoded as one string. Otherwise the text between two special tokens of the
    template is encoded in one piece. If it holds a literal, special tokens are disabled in it: a literal is
    tokenized as ordinary text would be.
    """
    if not any(segment.literal for segment in prompt.segments):
        return tokenizer.encode(prompt.text)
    ids: list[int] = []
    at_start = True
    for text, plain in _spans(tokenizer, prompt):
        ids += tokenizer.encode_part(text, parse_special=not plain, at_start=at_start)
        at_start = False
    return tokenizer.with_prefix(ids)


def _spans(tokenizer: Tokenizer, prompt: RenderedPrompt) -> Iterator[tuple[str, bool]]:
    """Yield texts, and whether special tokens in each are plain text. Texts without literals are joined."""
    runs = [list(run) for _, run in groupby(_parts(tokenizer, prompt), key=lambda part: part.is_special)]
    spans = [("".join(part.text for part in run), any(part.literal for part in run)) for run in runs]
    for plain, group in groupby(spans, key=lambda span: span[1]):
        yield "".join(text for text, _ in group), plain


def _parts(tokenizer: Tokenizer, prompt: RenderedPrompt) -> Iterator[_Part]:
    for segment in prompt.segments:
        if segment.literal:
            yield _Part(segment.text, literal=True)
        else:
            pieces = tokenizer.specials.split(segment.text)
            yield from (_Part(piece.text, piece.token is not None) for piece in pieces)
