"""An answer tells how it ended and how fast it was."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import ContextLengthError, DaemonUnreachableError, LlmdError
from llmd_tui.screens.chat.answer import Answer
from llmd_tui.screens.chat.store.records import Call, Content


def chunk(finish: str | None = None, usage: dict[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "guide", "choices": [{"delta": delta, "finish_reason": finish}], "usage": usage}


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    return {
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def answered(*chunks: dict[str, Any], window: int | None = 100, before: Content = Content()) -> Answer:  # noqa: B008
    answer = Answer(10.0, model="asked", seed=7, window=window, before=before)
    for number, one in enumerate(chunks, start=1):
        answer.feed(one, 10.0 + number)
    return answer


def test_a_whole_answer_has_its_figures() -> None:
    answer = answered(
        chunk(role="assistant", content=""),
        chunk(content="he"),
        chunk(content="llo"),
        chunk("stop"),
        usage(8, 5, 6),
    )
    answer.end()
    content = answer.content()
    assert (content.text, content.ending) == ("hello", "")
    figures = content.figures
    assert figures is not None
    assert (figures.model, figures.seed) == ("guide", 7)
    assert (figures.prompt_tokens, figures.cached_tokens, figures.completion_tokens) == (8, 6, 5)
    assert (figures.ttft_ms, figures.tokens_per_s) == (2000.0, 4.0)


def test_tokens_that_arrive_at_once_have_no_rate() -> None:
    answer = Answer(10.0, model="guide", seed=None, window=None)
    for now in (10.0, 10.001, 10.09):
        answer.feed(chunk(content="a"), now)
    figures = answer.content().figures
    assert figures is not None
    assert figures.tokens_per_s is None


def test_chunks_are_counted_until_the_usage_is_known() -> None:
    answer = answered(chunk(content="a"), chunk(content="b"), chunk(content="c"))
    assert answer.has_begun
    figures = answer.content().figures
    assert figures is not None
    assert (figures.tokens_per_s, figures.completion_tokens) == (1.0, None)


@pytest.mark.parametrize(("window", "ending"), [(20, "context"), (100, "max_tokens"), (None, "max_tokens")])
def test_a_cut_answer_says_what_cut_it(window: int | None, ending: str) -> None:
    answer = answered(chunk(content="a"), chunk("length"), usage(15, 5), window=window)
    answer.end()
    assert answer.content().ending == ending


def test_a_stream_that_just_ends_was_lost() -> None:
    answer = answered(chunk(content="half"))
    answer.end()
    assert (answer.content().text, answer.content().ending) == ("half", "lost")


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (DaemonUnreachableError("gone", hint="start it"), "lost"),
        (ContextLengthError(30, 20), "context"),
        (LlmdError("no such model"), "failed"),
    ],
    ids=["lost", "context", "failed"],
)
def test_what_arrived_before_a_failure_is_kept_with_its_words(error: LlmdError, ending: str) -> None:
    answer = answered(chunk(content="half"))
    answer.fail(error)
    content = answer.content()
    assert (content.text, content.ending, content.reason) == ("half", ending, str(error))


def test_a_stopped_answer_is_no_failure() -> None:
    answer = answered(chunk(content="half"))
    answer.stop()
    assert (answer.content().ending, answer.content().reason) == ("stopped", "")


def test_reasoning_and_calls_are_apart_from_the_text() -> None:
    answer = answered(
        chunk(reasoning_content="let me "),
        chunk(reasoning_content="see"),
        chunk(
            tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "weather", "arguments": '{"ci'}}]
        ),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": 'ty": 1}'}}]),
        chunk(tool_calls=[{"index": 1, "function": {"name": "time", "arguments": "{}"}}]),
        chunk("tool_calls"),
    )
    answer.end()
    content = answer.content()
    assert (content.text, content.reasoning, content.ending) == ("", "let me see", "")
    assert content.calls == (Call("weather", '{"city": 1}', "call_1"), Call("time", "{}"))


def test_a_continued_answer_begins_with_what_there_was() -> None:
    answer = answered(
        chunk(content=" world"), before=Content("hello", reasoning="r", calls=(Call("a", "{}"),))
    )
    content = answer.content()
    assert (content.text, content.reasoning, content.calls) == ("hello world", "r", (Call("a", "{}"),))


def test_a_model_cannot_control_the_terminal() -> None:
    answer = answered(chunk(content="a\x1b[2Jb\x9b\n\tc"))
    assert answer.content().text == "a[2Jb\n\tc"
