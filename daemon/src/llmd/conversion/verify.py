"""Check that a written model is equivalent to its source."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from llmd.api.base_op import BaseOp
from llmd.api.errors import TokenizerError, UnsupportedModelError
from llmd.api.plan import ModelPlan, Part
from llmd.chat.tokenizers.tokenizer import Tokenizer

CLOSE = 1e-6
"""Allowed relative difference of numbers, because files store some of them as float32."""
UNLIKE: frozenset[str] = frozenset({"architecture", "left_out"})
"""Fields of plans that do not affect the computation."""
TEXTS = (
    "The quick brown fox jumps over 13 lazy dogs, doesn't it? It's 3.14159 or 1,234,567!\n",
    "  def f(x):\n\treturn {'a': x ** 2}  # two\r\n\r\n    y = f(12345)\n\n\n",
    " Größe, čeština, Ελληνικά, привет, 你好世界, こんにちは, 안녕하세요, नमस्ते, שלום, مرحبا, ไทย",
    "🦙🏽 👩‍🚀 ½ ﬁ é e\u0301 \u200b\u2019 <|x|> [y] CamelCaseWords HTTPServer",
)
TOKENS_OF_A_TEXT = 64


class _Window(msgspec.Struct, frozen=True):
    name: str
    window: int | None


def check_same_plan(expected: ModelPlan, written: ModelPlan, what: str) -> None:
    """Check that two plans compute the same with the same tensors.

    Raises:
        UnsupportedModelError: ``what`` cannot express something about the model; the message says what.
    """
    found = _difference(_windows(expected), _windows(written), "") or _difference(expected, written, "")
    if found:
        raise UnsupportedModelError(
            f"{what} cannot express all of this model: {found}",
            hint="keep the model in its current form: the converted one would give other answers",
        )


def _windows(plan: ModelPlan) -> tuple[_Window, ...]:
    """Return the window of each layer: a message about a layer says more than that groups differ."""
    by_layer = {layer: group.window for group in plan.groups for layer in group.layers}
    return tuple(_Window(f"layer {layer}:", window) for layer, window in sorted(by_layer.items()))


def _difference(a: Any, b: Any, place: str) -> str:
    """Describe the first difference, or return an empty string. ``place`` names what is compared."""
    if isinstance(a, float) and isinstance(b, float):
        return "" if math.isclose(a, b, rel_tol=CLOSE) else f"{place} is {a:g} and would become {b:g}"
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        pairs = [(x, y, _place_of(x, place)) for x, y in zip(a, b, strict=True)]
    elif isinstance(a, msgspec.Struct) and type(a) is type(b):
        fields = [field for field in a.__struct_fields__ if field not in UNLIKE]
        pairs = [(getattr(a, field), getattr(b, field), f"{place} {field}".strip()) for field in fields]
    else:
        return "" if a == b else f"{place} is {_shown(a)} and would become {_shown(b)}"
    return next(filter(None, (_difference(x, y, inner) for x, y, inner in pairs)), "")


def _place_of(item: Any, place: str) -> str:
    """Return the name of a list's item for messages."""
    if isinstance(item, Part | _Window):
        return item.name
    return f"{place.removesuffix('ops')}{item.kind}" if isinstance(item, BaseOp) else place


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(item, BaseOp) for item in value):
        return ", ".join(op.kind for op in value)
    return type(value).__name__ if isinstance(value, msgspec.Struct | tuple) else repr(value)


def check_same_text(source: Tokenizer, written: Tokenizer, what: str) -> None:
    """Check that two tokenizers split texts alike: samples of many scripts, and the whole vocabulary.

    Raises:
        TokenizerError: a text is split differently.
    """
    for text in (*TEXTS, *_vocabulary(source)):
        if source.encode(text, parse_special=False) != written.encode(text, parse_special=False):
            raise TokenizerError(
                f"the tokenizer would split text differently in {what}: {text[:40]!r}, for example",
                hint="keep the model in its current form: the converted one would give other answers",
            )


def _vocabulary(tokenizer: Tokenizer) -> Iterable[str]:
    """Yield the texts of all tokens, joined in small batches."""
    texts = [
        tokenizer.token_text(place)
        for place in range(tokenizer.vocab_size)
        if not tokenizer.is_special(place)
    ]
    for first in range(0, len(texts), TOKENS_OF_A_TEXT):
        yield "".join(texts[first : first + TOKENS_OF_A_TEXT])
