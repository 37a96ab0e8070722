from __future__ import annotations

from llmd.api.parsing import ReasoningMarks, Tool
from llmd.api.parts import CallArguments, CallStart, Reasoning, Text
from llmd.builtin.parsers.hermes import load
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.reasoning import ReasoningSplitter

MARKS = ReasoningMarks("<think>", "</think>")


def reader_of(*, reasoning: bool = True, calls: bool = True) -> AnswerReader:
    return AnswerReader(
        reasoning=ReasoningSplitter(MARKS, is_open=False) if reasoning else None,
        calls=load().open([Tool("now", {})]) if calls else None,
    )


def test_calls_are_looked_for_in_the_answer_and_not_in_the_reasoning() -> None:
    call = '<tool_call>{"name": "now"}</tool_call>'
    reader = reader_of()
    assert reader.feed(f"<think>I could {call}.</think>Now. {call}") == [
        Reasoning(f"I could {call}."),
        Text("Now."),
        CallStart(0, "now"),
        CallArguments(0, "{}"),
    ]
    assert reader.finish() == []


def test_what_either_reader_holds_is_held_and_comes_at_the_end() -> None:
    reader = reader_of()
    assert (reader.feed("<th"), reader.held, reader.is_reasoning) == ([], 3, False)
    assert (reader.feed("ing> <to"), reader.held) == ([Text("<thing>")], 4)
    assert (reader.finish(), reader.held) == ([Text(" <to")], 0)


def test_unfinished_reasoning_is_told_at_the_end() -> None:
    reader = reader_of()
    reader.feed("<think>a </th")
    assert reader.is_reasoning
    assert reader.finish() == [Reasoning(" </th")]


def test_each_reader_works_alone() -> None:
    text = '<think>a</think>b<tool_call>{"name": "now"}'
    assert reader_of(calls=False).feed(text) == [Reasoning("a"), Text('b<tool_call>{"name": "now"}')]
    only_calls = reader_of(reasoning=False)
    assert only_calls.feed(text) == [Text("<think>a</think>b"), CallStart(0, "now"), CallArguments(0, "{}")]
    assert only_calls.finish() == []
    assert not only_calls.is_reasoning
