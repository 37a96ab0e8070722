"""Rows of requests say what each waits for, in words."""

from __future__ import annotations

from typing import Any, get_args

from llmd.cli.request_rows import REASONS, age, tokens, waits_for
from llmd.server.request_progress import WaitingFor


def row(**fields: Any) -> dict[str, Any]:
    return {"prompt_tokens": 100, "prompt_done": 100, "completion_tokens": 7, "ms": 1234.5, **fields}


def test_every_reason_has_its_words() -> None:
    assert set(REASONS) == set(get_args(WaitingFor))
    assert waits_for(row(waiting_for="kv_blocks")) == "KV blocks"
    assert waits_for(row(waiting_for=None)) == ""
    assert waits_for(row(waiting_for="a new reason")) == "a new reason"


def test_tokens_say_how_far_the_prompt_is() -> None:
    assert tokens(row()) == "100 + 7"
    assert tokens(row(prompt_done=40, completion_tokens=0)) == "40/100 + 0"


def test_age_is_a_duration() -> None:
    assert age(row()) == "1.2s"
