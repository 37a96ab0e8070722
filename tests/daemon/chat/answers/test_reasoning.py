from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmd.api.parsing import ReasoningMarks
from llmd.api.parts import Reasoning, Text
from llmd.chat.answers.reasoning import ReasoningSplitter

MARKS = ReasoningMarks("<think>", "</think>")


def split(pieces: list[str], *, is_open: bool = False) -> tuple[str, str]:
    """Return reasoning and answer of a text that is fed in pieces."""
    splitter = ReasoningSplitter(MARKS, is_open=is_open)
    parts = [part for piece in pieces for part in splitter.feed(piece)] + splitter.finish()
    assert splitter.held == 0
    kinds = [type(part) for part in parts]
    assert kinds == sorted(kinds, key=[Reasoning, Text].index)
    return (
        "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "".join(part.text for part in parts if isinstance(part, Text)),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nTwo and two.\n</think>\n\nFour.", ("Two and two.", "Four.")),
        ("\n<think>a</think>b", ("a", "b")),
        ("<think>\n\n</think>\n\nFour.\n", ("", "Four.\n")),
        ("Four.", ("", "Four.")),
        ("  Four. <think>x</think>", ("", "  Four. <think>x</think>")),
        ("<thin air", ("", "<thin air")),
        ("<thi", ("", "<thi")),
        ("<think>a </thin b", ("a </thin b", "")),
        ("<think>a</think>b</think>c", ("a", "b</think>c")),
        ("<think>a\n\nb</think>c\n", ("a\n\nb", "c\n")),
        ("", ("", "")),
    ],
)
def test_answer_begins_with_its_reasoning_or_has_none(text: str, expected: tuple[str, str]) -> None:
    assert split([text]) == split(list(text)) == expected


def test_reasoning_that_the_prompt_opened_has_no_begin() -> None:
    text = "\nTwo and two.\n</think>\n\nFour."
    assert split([text], is_open=True) == split(list(text), is_open=True) == ("Two and two.", "Four.")
    assert split(["never", " closed"], is_open=True) == ("never closed", "")


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "think", "\n", " ", "a", "b"])), st.booleans())
@example(["<think>", "\n", "</think>", "\n", "a"], False)
def test_any_cut_splits_alike(pieces: list[str], is_open: bool) -> None:  # noqa: FBT001
    assert split(pieces, is_open=is_open) == split(["".join(pieces)], is_open=is_open)


def test_what_comes_next_is_known_and_nothing_is_held_longer_than_needed() -> None:
    splitter = ReasoningSplitter(MARKS, is_open=False)
    assert (splitter.feed("<thi"), splitter.is_reasoning, splitter.held) == ([], False, 4)
    assert (splitter.feed("nk>"), splitter.is_reasoning, splitter.held) == ([], True, 0)
    assert (splitter.feed("a <"), splitter.is_reasoning, splitter.held) == ([Reasoning("a")], True, 2)
    assert splitter.feed("b") == [Reasoning(" <b")]
    assert (splitter.feed("</think>"), splitter.is_reasoning) == ([], False)
    assert splitter.feed("c <") == [Text("c <")]
