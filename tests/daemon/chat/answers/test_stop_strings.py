from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.errors import RequestError
from llmd.chat.answers.stop_strings import StopResult, StopStringMatcher


def run(stops: list[str], pieces: list[str]) -> StopResult:
    """Return all text that is sent, and the stop string that ended it."""
    matcher = StopStringMatcher(stops)
    sent = ""
    for piece in pieces:
        result = matcher.feed(piece)
        sent += result.text
        if result.stop is not None:
            return StopResult(sent, result.stop)
    return StopResult(sent + matcher.finish())


def test_stop_string_over_three_tokens_ends_the_text_before_it() -> None:
    assert run(["STOP"], ["say S", "TO", "P and more"]) == StopResult("say ", "STOP")


def test_holds_back_only_what_may_become_a_stop_string() -> None:
    matcher = StopStringMatcher(["\nUser:", "###"])
    assert matcher.feed("answer\nUs").text == "answer"
    assert matcher.feed("ual").text == "\nUsual"
    assert matcher.feed("##").text == ""
    assert matcher.feed(" #").text == "## "
    assert matcher.finish() == "#"


def test_overlapping_start_is_found() -> None:
    assert run(["aab"], ["a", "a", "a", "b"]) == StopResult("a", "aab")


def test_match_that_is_complete_first_wins() -> None:
    assert run(["later", "lat"], ["a later one"]) == StopResult("a ", "lat")
    assert run(["abcd", "bc"], ["abcd"]) == StopResult("a", "bc")


def test_longest_of_those_that_end_together_wins() -> None:
    assert run(["end", "the end"], ["the end"]) == StopResult("", "the end")


def test_without_stop_strings_everything_passes_at_once() -> None:
    assert StopStringMatcher([]).feed("text") == StopResult("text")


def test_empty_stop_string_is_refused() -> None:
    with pytest.raises(RequestError, match="empty") as caught:
        StopStringMatcher(["a", ""])
    assert caught.value.param == "stop"


@given(
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
    st.text(alphabet="abc", max_size=40),
    st.lists(st.integers(0, 40), max_size=6),
)
def test_outcome_does_not_depend_on_the_cuts(stops: list[str], text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    ends = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
    end, _, stop = min(ends, default=(len(text), 0, None))
    expected = StopResult(text[: end - len(stop or "")], stop)
    assert run(stops, [text]) == expected
    assert run(stops, pieces) == expected
