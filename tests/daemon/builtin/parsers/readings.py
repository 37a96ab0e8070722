"""Read texts with call readers, independently of how they are split."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from llmd.api.parsing import CallFormat, CallReader, Tool
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text

WEATHER = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"]},
        },
        "required": ["city"],
    },
)
NOW = Tool("now", {"type": "object", "properties": {}})
TOOLS = (WEATHER, NOW)

Call = tuple[str, str]
"""Name and arguments of a call."""


def joined(parts: Iterable[AnswerPart]) -> list[str | Call]:
    """Return texts and calls in order, with their pieces joined."""
    found: list[str | Call] = []
    for part in parts:
        match part, found[-1:]:
            case Text(text), [str(before)]:
                found[-1] = before + text
            case Text(text), _:
                assert text
                found.append(text)
            case CallStart(index, name), _:
                assert index == sum(isinstance(one, tuple) for one in found)
                found.append((name, ""))
            case CallArguments(index, json), [(name, before)]:
                assert index == sum(isinstance(one, tuple) for one in found) - 1
                assert json
                found[-1] = (name, before + json)
            case _:
                raise AssertionError(part)
    return found


def merged(parts: Iterable[AnswerPart]) -> list[AnswerPart]:
    """Join adjacent pieces of one text, of one reasoning, or of the arguments of one call."""
    found: list[AnswerPart] = []
    for part in parts:
        match part, found[-1:]:
            case Text(text), [Text(before)]:
                found[-1] = Text(before + text)
            case Reasoning(text), [Reasoning(before)]:
                found[-1] = Reasoning(before + text)
            case CallArguments(index, json), [CallArguments(same, before)] if index == same:
                found[-1] = CallArguments(index, before + json)
            case _:
                found.append(part)
    return found


def run(reader: CallReader, pieces: Sequence[str]) -> list[AnswerPart]:
    """Return all parts of an answer that arrives in pieces."""
    parts: list[AnswerPart] = []
    for piece in pieces:
        parts += reader.feed(piece)
        assert reader.held >= 0
    parts += reader.finish()
    assert reader.held == 0
    assert not any(isinstance(part, Reasoning) for part in parts)
    return parts


def read(form: CallFormat, text: str, tools: Sequence[Tool] = TOOLS) -> list[str | Call]:
    """Read an answer at once and character by character; both must agree."""
    whole = joined(run(form.open(tools), [text]))
    assert joined(run(form.open(tools), list(text))) == whole
    return whole


def only_call(form: CallFormat, text: str) -> tuple[str, Any]:
    """Return name and arguments of an answer that is exactly one call."""
    (call,) = read(form, text)
    assert isinstance(call, tuple), call
    name, arguments = call
    return name, json.loads(arguments)


def cuts_of(text: str) -> st.SearchStrategy[list[str]]:
    """Return a strategy that splits the text into pieces."""
    places = st.lists(st.integers(0, len(text)), max_size=8).map(sorted)
    return places.map(lambda cuts: [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])
