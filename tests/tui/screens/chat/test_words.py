from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llmd_tui.screens.chat.store.records import Content, Figures
from llmd_tui.screens.chat.words import ending_words, figures_line, progress_share, progress_words
from llmd_tui.state.daemon_state import DaemonState, Loading, Request


def state(*requests: dict[str, Any], loading: Loading | None = None) -> DaemonState:
    made = DaemonState()
    plain = {"model": "guide", "route": "/v1/chat/completions"}
    found = [msgspec.convert({**plain, **fields}, Request) for fields in requests]
    made.requests = {one.request_id: one for one in found}
    if loading is not None:
        made.loading = {"guide": loading}
    return made


@pytest.mark.parametrize(
    ("requests", "words", "share"),
    [
        ([], "", None),
        (
            [{"request_id": "mine", "state": "waiting", "waiting_for": "kv_blocks"}],
            "waiting for KV blocks",
            None,
        ),
        (
            [
                {"request_id": "a", "state": "decode"},
                {"request_id": "b", "state": "waiting"},
                {"request_id": "c", "state": "queued"},
                {"request_id": "other", "state": "queued", "model": "other"},
                {"request_id": "mine", "state": "waiting"},
                {"request_id": "later", "state": "waiting"},
            ],
            "waiting: 2 requests before it",
            None,
        ),
        (
            [{"request_id": "b", "state": "waiting"}, {"request_id": "mine", "state": "queued"}],
            "waiting: 1 request before it",
            None,
        ),
        (
            [{"request_id": "mine", "state": "prefill", "prompt_done": 512, "prompt_tokens": 2048}],
            "reading the prompt 512/2048",
            0.25,
        ),
        ([{"request_id": "mine", "state": "prefill"}], "reading the prompt", None),
        ([{"request_id": "mine", "state": "decode"}], "", None),
        ([{"request_id": "old"}, {"request_id": "their", "state": "prefill"}], "reading the prompt", None),
    ],
)
def test_the_time_before_the_first_token_has_a_reason(
    requests: list[dict[str, Any]], words: str, share: float | None
) -> None:
    assert progress_words(state(*requests), "mine", "guide") == words
    assert progress_share(state(*requests), "mine", "guide") == share


def test_loading_comes_first() -> None:
    loading = state({"request_id": "mine", "state": "waiting"}, loading=Loading("weights", 45, 100))
    assert progress_words(loading, "mine", "guide") == "loading guide: weights 45%"
    assert progress_share(loading, "mine", "guide") == 0.45
    unknown = state(loading=Loading("tokenizer"))
    assert progress_words(unknown, "mine", "guide") == "loading guide: tokenizer"
    assert progress_share(unknown, "mine", "guide") is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Content("all"), ""),
        (Content("half", ending="stopped"), "stopped – Tab, then c continues it; Ctrl-R writes another one"),
        (
            Content("half", ending="lost", reason="reset"),
            "reset – Tab, then c continues it; Ctrl-R writes",
        ),
        (
            Content("", ending="failed", reason="no model"),
            "no model – Ctrl-R tries again; until then this turn is not sent",
        ),
        (Content("", ending="context", reason="too long"), "too long – drop the oldest turns with /drop"),
        (Content("half", ending="max_tokens"), "cut: max_tokens is reached – Tab, then c continues it"),
    ],
)
def test_an_answer_that_is_not_whole_says_why_and_what_to_do(content: Content, words: str) -> None:
    assert words in ending_words(content)
    assert bool(ending_words(content)) == bool(words)


def test_the_figures_of_an_answer_are_those_that_are_known() -> None:
    known = Figures("guide", 200, 150, 42, 80.0, 12.34, 7)
    assert figures_line(known) == (
        "guide · 42 tokens · 12.3 tok/s · first after 80 ms · prompt 200 (75% cached) · seed 7"
    )
    assert figures_line(Figures("guide")) == "guide"
