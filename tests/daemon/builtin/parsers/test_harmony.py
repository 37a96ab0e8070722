"""Answers in the form of gpt-oss, as the engine's text: without the tokens that end an answer.

They are written by hand after the documentation of the format: no model generated them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from llmd.api.parsing import ReasoningMarks, Tool
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.builtin.parsers.harmony import load
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.reasoning import ReasoningSplitter
from tests.daemon.builtin.parsers.long_answers import BEFORE, BETWEEN, TOKYO, ZURICH
from tests.daemon.builtin.parsers.readings import TOOLS

MARKS = next(parser.load() for parser in llmd_parsers() if parser.name == "harmony_analysis")

ANALYSIS = "<|channel|>analysis<|message|>"
NEXT = "<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>"
AFTER_CALL = "<|call|><|start|>assistant"
COMMENTARY = "<|channel|>commentary<|message|>"
CALL = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
CITY = '{"city":"Ulm"}'
SEVERAL = (
    f"{ANALYSIS}Warm? 天気{NEXT}{COMMENTARY}{BEFORE}{NEXT}{CALL}{TOKYO}{AFTER_CALL}{COMMENTARY}{BETWEEN}"
    f"{NEXT}{CALL}{ZURICH}{AFTER_CALL}{CALL.replace('get_weather', 'now')}{{}}"
)

ANSWERS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "answer at once": (f"{FINAL}Hello, you.", [("text", "Hello, you.")]),
    "reasoning, then an answer": (
        f"{ANALYSIS}The user greets.{NEXT}{FINAL}Hello!",
        [("reasoning", "The user greets."), ("text", "Hello!")],
    ),
    "call": (
        f"{ANALYSIS}Need weather.{NEXT}{CALL}{CITY}",
        [("reasoning", "Need weather."), ("get_weather", CITY)],
    ),
    "call whose tool comes before the channel": (
        f"{ANALYSIS}Need weather.{NEXT} to=functions.get_weather<|channel|>commentary json<|message|>{CITY}",
        [("reasoning", "Need weather."), ("get_weather", CITY)],
    ),
    "call at once, without the word json": (
        " to=functions.now<|channel|>commentary<|message|>{}",
        [("now", "{}")],
    ),
    "text for the user before a call": (
        f"{ANALYSIS}Plan.{NEXT}<|channel|>commentary<|message|>I look it up.{NEXT}{CALL}{CITY}",
        [("reasoning", "Plan."), ("text", "I look it up."), ("get_weather", CITY)],
    ),
    "reasoning twice": (
        f"{ANALYSIS}One.{NEXT}<|channel|>commentary<|message|>Wait.{NEXT}{ANALYSIS}Two.{NEXT}{FINAL}Yes.",
        [("reasoning", "One."), ("text", "Wait."), ("reasoning", "Two."), ("text", "Yes.")],
    ),
    "two calls": (
        f"{CALL}{CITY}<|call|><|start|>assistant{CALL.replace('get_weather', 'now')}{{}}",
        [("get_weather", CITY), ("now", "{}")],
    ),
    "several calls with text before and between them": (
        SEVERAL,
        [
            ("reasoning", "Warm? 天気"),
            ("text", BEFORE),
            ("get_weather", TOKYO),
            ("text", BETWEEN),
            ("get_weather", ZURICH),
            ("now", "{}"),
        ],
    ),
    "tool that is no function": (
        '<|channel|>analysis to=browser.search code<|message|>{"query":"x"}',
        [("browser.search", '{"query":"x"}')],
    ),
    "end of a begun text": ("and so on.", [("text", "and so on.")]),
    "only reasoning": (f"{ANALYSIS}Without an end", [("reasoning", "Without an end")]),
    "header without an end": ("<|channel|>final", [("text", "<|channel|>final")]),
    "call without JSON": (f"{CALL}Ulm", [("text", f"{CALL}Ulm")]),
}


def joined(parts: Iterable[AnswerPart]) -> list[tuple[str, str]]:
    """Return kinds, or names of tools, with the texts of adjacent pieces joined."""
    found: list[tuple[str, str]] = []
    for part in parts:
        match part:
            case CallStart(_, name):
                found.append((name, ""))
                continue
            case CallArguments(_, text):
                kind = found[-1][0]
            case Text(text):
                kind = "text"
            case Reasoning(text):
                kind = "reasoning"
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return found


def read(
    pieces: Sequence[str], tools: Sequence[Tool] = TOOLS, *, splits: bool = True
) -> list[tuple[str, str]]:
    assert isinstance(MARKS, ReasoningMarks)
    splitter = ReasoningSplitter(MARKS, is_open=False) if splits else None
    reader = AnswerReader(reasoning=splitter, calls=load().open(tools))
    parts = [part for piece in pieces for part in reader.feed(piece)]
    return joined([*parts, *reader.finish()])


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_read(name: str) -> None:
    text, expected = ANSWERS[name]
    assert read([text]) == expected
    assert read(list(text)) == expected


def test_without_tools_a_call_is_text() -> None:
    assert read([f"{CALL}{CITY}"], tools=()) == [("text", CITY)]


def test_reasoning_that_is_not_split_off_is_text_without_headers() -> None:
    text, _ = ANSWERS["reasoning, then an answer"]
    assert read([text], splits=False) == [("text", "The user greets.Hello!")]
