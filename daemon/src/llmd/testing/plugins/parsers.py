"""Checks of parsers: selection by the template; and that calls of the grammar are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from llmd.api.parsing import (
    CallFormat,
    ChoiceTerm,
    ListTerm,
    ReasoningMarks,
    SchemaTerm,
    Term,
    TextTerm,
    Tool,
)
from llmd.api.parts import AnswerPart, CallArguments, CallStart
from llmd.api.plugins import Parser
from llmd.testing.plugins.results import NotTested, Result, case, unequal

UNRELATED = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
TOOL = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
ARGUMENTS = {"city": "Ulm"}


def check_parser(parser: Parser) -> Iterator[Result]:
    """Yield the results for a parser."""
    name = f"parser {parser.name}"
    yield case(f"{name}: does not fit an unrelated template", lambda: unequal(parser.matches(UNRELATED), 0))
    wanted = CallFormat if parser.reads == "calls" else ReasoningMarks
    loaded = case(f"{name}: loads", lambda: _wrong_type(parser, wanted))
    yield loaded
    if loaded.problem or parser.reads != "calls":
        return
    form = parser.load()
    assert isinstance(form, CallFormat)
    try:
        answer = sample_answer(form)
    except UnwritableError as error:
        yield NotTested(f"{name}: reads calls", str(error))
        return
    yield case(f"{name}: reads calls of its grammar", lambda: _misread(form, answer, len(answer)))
    yield case(f"{name}: reads them one character at a time", lambda: _misread(form, answer, 1))


class UnwritableError(Exception):
    """No sample can be written for a term of a grammar."""


def sample_answer(form: CallFormat) -> str:
    """Return an answer with two calls, as the grammar allows it.

    Raises:
        UnwritableError: a term needs text of a pattern.
    """
    grammar = form.grammar([TOOL])
    call = "".join(map(_written, grammar.calls[0]))
    calls = grammar.separator.join([call, call])
    return f"{grammar.trigger}{grammar.opening}{calls}{grammar.closing}"


def _written(term: Term) -> str:
    match term:
        case str():
            return term
        case SchemaTerm(schema):
            return json.dumps(ARGUMENTS if schema.get("type") == "object" else ARGUMENTS["city"])
        case TextTerm(end, None):
            return f"{ARGUMENTS['city']}{end}"
        case TextTerm():
            raise UnwritableError(f"its grammar has a text of the pattern {term.pattern}")
        case ChoiceTerm(options):
            return "".join(map(_written, options[0]))
        case ListTerm(item):
            return "".join(map(_written, item))


def _misread(form: CallFormat, answer: str, size: int) -> str:
    reader = form.open([TOOL])
    pieces = (answer[start : start + size] for start in range(0, len(answer), size))
    parts: list[AnswerPart] = [part for piece in pieces for part in reader.feed(piece)]
    parts += reader.finish()
    wanted = [(index, TOOL.name, ARGUMENTS) for index in range(2)]
    return unequal(_calls(parts), wanted) and f"read {_calls(parts)} in {answer!r}, expected {wanted}"


def _calls(parts: Sequence[AnswerPart]) -> list[tuple[int, str, object]]:
    """Return index, name and arguments of each call."""
    texts: dict[int, str] = {}
    for part in parts:
        if isinstance(part, CallArguments):
            texts[part.index] = texts.get(part.index, "") + part.json
    return [
        (part.index, part.name, json.loads(texts.get(part.index, "null")))
        for part in parts
        if isinstance(part, CallStart)
    ]


def _wrong_type(parser: Parser, wanted: type[CallFormat | ReasoningMarks]) -> str:
    loaded = parser.load()
    return (
        ""
        if isinstance(loaded, wanted)
        else f"load returned a {type(loaded).__name__}, not a {wanted.__name__}"
    )
