"""Keep special tokens that occur in a request plain text.

Before a template renders, each character of such an occurrence is replaced by a distinct character from
Unicode's private-use planes. Afterwards it is replaced back, and its position in the prompt is known.
Templates may trim, cut, upper-case, measure or escape the content: the placeholder has no case, no whitespace
and the same length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import msgspec

from llmd.api.errors import RequestError
from llmd.chat.tokenizers.special_tokens import any_of

_PRIVATE = re.compile("[\U000f0000-\U0010ffff]")
_FIRST, _LAST = 0xF0000, 0x10FFFD

# Templates search earlier answers for these to remove reasoning.
_REASONING_TAGS = frozenset({"<think>", "</think>", "[THINK]", "[/THINK]"})


class Segment(msgspec.Struct, frozen=True):
    """A run of a prompt."""

    text: str
    literal: bool = False
    """It reads like a special token but is plain text."""


class RenderedPrompt(msgspec.Struct, frozen=True):
    """A conversation as rendered by a template."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


class LiteralSwap:
    """The placeholders of one render: `hide` the template's inputs, then `reveal` its output."""

    def __init__(self, special_texts: Collection[str], template: str, inputs: Any) -> None:
        """Raise `RequestError` if ``inputs`` leave no characters for placeholders."""
        self._specials = any_of(special_texts)
        strings = list(_strings(inputs))
        found = {match for text in strings for match in self._specials.findall(text)}
        taken = {char for text in (template, *strings) for char in _PRIVATE.findall(text)} if found else set()
        free = (chr(code) for code in range(_FIRST, _LAST + 1) if chr(code) not in taken)
        self._placeholders = {text: "".join(islice(free, len(text))) for text in sorted(found)}
        if any(len(signs) < len(text) for text, signs in self._placeholders.items()):
            raise RequestError(
                "the messages contain special tokens and all private-use characters that could replace them",
                param="messages",
                hint="remove private-use characters (U+F0000 and above) from the messages",
            )
        self._originals = {
            ord(sign): char
            for text, signs in self._placeholders.items()
            for sign, char in zip(signs, text, strict=True)
        }

    def hide(self, value: Any) -> Any:
        """Hide every string in ``value``, also keys of objects; in assistant messages keep reasoning tags."""
        if not self._placeholders:
            return value
        return self._hide(value, keep=frozenset())

    def reveal(self, text: str) -> RenderedPrompt:
        """Return ``text`` with the original characters, in segments."""
        if not self._originals:
            return RenderedPrompt((Segment(text),) if text else ())
        if "\\ud" in text:
            text = self._unescape(text)
        signs = "".join(re.escape(chr(code)) for code in self._originals)
        runs = re.split(f"([{signs}]+)", text)
        segments = (Segment(run.translate(self._originals), place % 2 == 1) for place, run in enumerate(runs))
        return RenderedPrompt(tuple(segment for segment in segments if segment.text))

    def _unescape(self, text: str) -> str:
        """Unescape placeholders that ``tojson(ensure_ascii=true)`` has escaped."""
        for code in self._originals:
            text = text.replace(json.dumps(chr(code))[1:-1], chr(code))
        return text

    def _hide(self, value: Any, keep: frozenset[str]) -> Any:
        if isinstance(value, str):
            return self._hide_text(value, keep)
        if isinstance(value, dict):
            inner = _REASONING_TAGS if value.get("role") == "assistant" else keep
            return {self._hide(key, keep): self._hide(item, inner) for key, item in value.items()}
        return [self._hide(item, keep) for item in value] if isinstance(value, list) else value

    def _hide_text(self, text: str, keep: frozenset[str]) -> str:
        return self._specials.sub(
            lambda match: match.group() if match.group() in keep else self._placeholders[match.group()], text
        )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
