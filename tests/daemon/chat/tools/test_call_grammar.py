from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar, Vocabulary
from llmd.api.parsing import CallFormat, CallGrammar, ChoiceTerm, SchemaTerm, Tool
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.tools.call_grammar import lark_of_calls
from llmd.chat.tools.choice import ToolChoice
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow
from tests.daemon.builtin.parsers.readings import joined, run

BYTES = 256
END = BYTES
FORMATS = {one.name: one for one in llmd_parsers() if one.reads == "calls"}
PLACE = Tool(
    "find_place",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 0, "maximum": 99},
            "exact": {"type": "boolean"},
        },
        "required": ["days", "unit"],
        "additionalProperties": False,
    },
)
MARK = Tool(
    "mark", {"type": "object", "properties": {"on": {"type": "boolean"}}, "additionalProperties": False}
)
TOOLS = (PLACE, MARK)
SIZE = {"enum": ["s", "m"]}
SPOT = {
    "type": "object",
    "properties": {
        "x": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/size"}},
    },
    "required": ["x", "tags"],
    "additionalProperties": False,
}
BOOK = Tool(
    "book",
    {
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", 1, None, True]},
            "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
            "size": {"$ref": "#/$defs/size"},
            "spot": {"$ref": "#/$defs/spot"},
        },
        "required": ["unit", "days", "size", "spot"],
        "additionalProperties": False,
        "$defs": {"size": SIZE, "spot": SPOT},
    },
)
"""A tool with values of several types, and definitions."""
REQUIRED, AUTO = ToolChoice("required"), ToolChoice()
ONE_CALL = ToolChoice("required", parallel=False)


class Model:
    """Generates tokens that a grammar allows, from all bytes and ``marks`` as control tokens."""

    def __init__(self, marks: Sequence[str] = ()) -> None:
        self.control_ids = {mark: END + 1 + place for place, mark in enumerate(marks)}
        names = [b"<end>", *(mark.encode() for mark in marks)]
        tokens = (*(bytes([value]) for value in range(BYTES)), *names)
        vocabulary = Vocabulary(tokens, special_ids=tuple(range(END, len(tokens))), end_ids=(END,))
        self.texts = tokens
        self._compiler = GrammarCompiler(vocabulary, len(tokens))
        self._filler = MaskFiller(len(tokens), num_threads=1)

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text; marks in it become control tokens."""
        ids = list(text.encode())
        for mark, token in self.control_ids.items():
            wanted = list(mark.encode())
            while (place := _find(ids, wanted)) is not None:
                ids[place : place + len(wanted)] = [token]
        return ids

    def draw(
        self, grammar: Grammar, choose: Callable[[list[int]], int], begin: str = "", limit: int = 1000
    ) -> str | None:
        """Return an answer; None if the grammar rejects ``begin``, or the answer does not end."""
        matcher = self._compiler.compile(grammar)
        begun, drawn = self.ids(begin), b""
        for place in range(limit):
            masks, failed = self._filler.fill([MaskRow(matcher, (END,))])
            assert not failed
            allowed = np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little")).tolist()
            token = begun[place] if place < len(begun) else choose(allowed)
            if token not in allowed:
                return None
            if token == END:
                return drawn.decode("utf-8", "replace")
            matcher.accept([token])
            drawn += self.texts[token]
        return None


def _find(ids: list[int], wanted: list[int]) -> int | None:
    return next((at for at in range(len(ids)) if ids[at : at + len(wanted)] == wanted), None)


@cache
def model_of(marks: tuple[str, ...]) -> Model:
    return Model(marks)


def chooser(seed: int, favours: str = 'aF1"}])>,;|<') -> Callable[[list[int]], int]:
    """Return a function that picks an allowed token: often the end, else a character that leads to it."""
    dice = random.Random(seed)
    likely = set(favours.encode())

    def choose(allowed: list[int]) -> int:
        if END in allowed and dice.random() < 0.4:
            return END
        wanted = [token for token in allowed if token in likely or token > END]
        printable = [token for token in allowed if 32 <= token != 127 or token == 10]
        return dice.choice(wanted if wanted and dice.random() < 0.8 else printable or allowed)

    return choose


def form_of(name: str) -> CallFormat:
    form = FORMATS[name].load()
    assert isinstance(form, CallFormat)
    return form


def calls_of(form: CallFormat, answer: str, tools: Sequence[Tool] = TOOLS) -> list[tuple[str, Any]]:
    """Return the calls of an answer. Check that it has nothing else and that arguments match the schemas."""
    schemas: Mapping[str, Mapping[str, Any]] = {tool.name: tool.parameters for tool in tools}
    found = []
    for call in joined(run(form.open(tools), list(answer))):
        assert isinstance(call, tuple), (call, answer)
        name, arguments = call[0], json.loads(call[1])
        jsonschema.validate(arguments, schemas[name])
        found.append((name, arguments))
    return found


@pytest.mark.parametrize("control", [True, False], ids=["control", "text"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_whatever_a_model_draws_under_the_grammar_is_read_as_valid_calls(name: str, control: bool) -> None:  # noqa: FBT001
    form = form_of(name)
    model = model_of(form.marks if control else ())
    grammar = lark_of_calls(form.grammar(TOOLS), REQUIRED, model.control_ids)
    counts: list[int] = []
    for seed in range(64):
        answer = model.draw(grammar, chooser(seed))
        counts += [] if answer is None else [len(calls_of(form, answer))]
        if len(counts) >= 6 and max(counts) >= 2:
            break
    assert min(counts) == 1
    assert max(counts) >= 2


@pytest.mark.parametrize("control", [True, False], ids=["control", "text"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_text_with_a_pattern_follows_it_however_its_family_writes_texts(name: str, control: bool) -> None:  # noqa: FBT001
    pattern = r'^(?:\+[a"]\n|"/\\)+$'
    text = {"type": "string", "pattern": pattern}
    write = Tool("write", {"type": "object", "properties": {"input": text}, "required": ["input"]})
    form = form_of(name)
    model = model_of(form.marks if control else ())
    grammar = lark_of_calls(form.grammar([write]), REQUIRED, model.control_ids)
    answers = [model.draw(grammar, chooser(seed, favours='"}]>,;|</\n')) for seed in range(48)]
    found = [calls_of(form, answer, [write]) for answer in answers if answer is not None]
    assert len(found) >= 3
    assert any("\n" in call[1]["input"] for calls in found for call in calls)
    assert all(re.fullmatch(pattern[1:-1], call[1]["input"]) for calls in found for call in calls)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_types_that_differ_and_definitions_hold_however_a_family_writes_values(name: str) -> None:
    form = form_of(name)
    model = model_of(form.marks)
    grammar = lark_of_calls(form.grammar([BOOK]), ONE_CALL, model.control_ids)
    answers = [model.draw(grammar, chooser(seed)) for seed in range(8)]
    found = [calls_of(form, answer, [BOOK]) for answer in answers if answer is not None]
    assert len(found) >= 4
    assert len({json.dumps(calls) for calls in found}) >= 3


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_one_call_is_the_most_without_parallel_calls(name: str) -> None:
    form = form_of(name)
    model = model_of(form.marks)
    grammar = lark_of_calls(form.grammar(TOOLS[1:]), ONE_CALL, model.control_ids)
    for seed in range(4):
        answer = model.draw(grammar, chooser(seed))
        assert answer is not None
        assert len(calls_of(form, answer)) == 1


@pytest.mark.parametrize("control", [True, False], ids=["control", "text"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_text_is_free_until_the_model_begins_a_call_which_is_bound(name: str, control: bool) -> None:  # noqa: FBT001
    form = form_of(name)
    model = model_of(form.marks if control else ())
    grammar = form.grammar(TOOLS[1:])
    lark = lark_of_calls(grammar, AUTO, model.control_ids, text_begin=form.text_begin)
    text = f"{form.text_begin}Just text, {{a}} [b] <c>."
    assert model.draw(lark, lambda _: END, text) == text
    (first, *_) = grammar.calls[0]
    assert isinstance(first, str)
    is_first = grammar.at_start or form.text_begin
    begin = ("" if is_first else "Well. ") + grammar.trigger + grammar.opening + first
    answer = model.draw(lark, chooser(1), begin)
    assert answer is not None
    (call,) = joined(run(form.open(TOOLS), [answer.removeprefix("Well. ")]))[:1]
    assert call[0] == "mark"
    assert model.draw(lark, chooser(1), begin + "nonsense") is None
    unknown = begin.replace("mark", "other")
    assert grammar.at_start or model.draw(lark, chooser(1), unknown) is None


def test_calls_of_glm_may_be_in_one_line_or_in_several() -> None:
    model = model_of(())
    lark = lark_of_calls(form_of("glm45").grammar([MARK]), REQUIRED, {})
    key, value, end = "<arg_key>on</arg_key>", "<arg_value>true</arg_value>", "</tool_call>"
    lines = f"<tool_call>mark\n{key}\n{value}\n{end}"
    line = f"<tool_call>mark{key}{value}{end}"
    for calls in (f"{lines}\n{lines}", f"{line}{line}"):
        assert model.draw(lark, lambda _: END, calls) == calls


HERMES = form_of("hermes").grammar([MARK])


def test_reasoning_is_kept_out_of_free_text() -> None:
    model = model_of(())
    lark = lark_of_calls(HERMES, AUTO, {}, reasoning_begin="<think>")
    assert model.draw(lark, lambda _: END, "<thin") == "<thin"
    assert model.draw(lark, lambda _: END, "\n<think>x") is None


def test_answer_without_a_call_may_be_bound_too() -> None:
    model = model_of(())
    bound = lark_of_calls(HERMES, AUTO, {}, answer=Grammar("choice", '["yes", "no"]'))
    assert model.draw(bound, lambda _: END, "yes") == "yes"
    assert model.draw(bound, lambda _: END, "maybe") is None
    assert model.draw(bound, chooser(3), "<tool_call>") is not None
    forced = lark_of_calls(HERMES, REQUIRED, {}, answer=Grammar("choice", '["yes", "no"]'))
    assert model.draw(forced, lambda _: END, "yes") is None


def test_texts_with_signs_of_regular_expressions_are_told_apart() -> None:
    odd = CallGrammar([("[a/b](\n<&~x", SchemaTerm({"type": "integer"}))], trigger="", at_start=True)
    model = model_of(())
    lark = lark_of_calls(odd, AUTO, {})
    assert model.draw(lark, lambda _: END, "[a/b](\n<&~x7") == "[a/b](\n<&~x7"
    assert model.draw(lark, lambda _: END, "[a/b](\n<&~xy") is None
    assert model.draw(lark, lambda _: END, "[a/b](\n<&~y") == "[a/b](\n<&~y"


def test_optional_terms_may_be_left_out() -> None:
    form = CallGrammar([("(", ChoiceTerm((("a",), ("b", "c"), ())), ")")], trigger="!")
    lark = lark_of_calls(form, REQUIRED, {})
    drawn = {
        model_of(()).draw(lark, chooser(seed, ")"), begin)
        for seed, begin in enumerate(["!()", "!(a)", "!(bc)"])
    }
    assert all(answer is not None for answer in drawn)
    assert model_of(()).draw(lark, lambda _: END, "!(b)") is None


def test_schema_that_cannot_be_enforced_is_refused() -> None:
    form = CallGrammar([("(", SchemaTerm({"not": {"multipleOf": 2}}))], trigger="!")
    with pytest.raises(GrammarError):
        lark_of_calls(form, REQUIRED, {})
