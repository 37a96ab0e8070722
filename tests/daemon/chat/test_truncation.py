from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from llmd.api.errors import RequestError
from llmd.chat.truncation import Fitted, fit_messages, fit_tokens, fit_whole, prompt_room

SYSTEM = {"role": "system", "content": "s" * 5}
TURNS = [
    {"role": "user", "content": "a" * 10},
    {"role": "assistant", "content": "b" * 10},
    {"role": "user", "content": "c" * 10},
]


def encode(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    return tuple("".join(message["content"] for message in messages).encode())


def strict(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Encode like templates that require a user message after the system message."""
    if next(message["role"] for message in messages if message["role"] != "system") != "user":
        raise RequestError("roles must alternate")
    return encode(messages)


def text(fitted: Fitted) -> str:
    return bytes(fitted.tokens).decode()


@pytest.mark.parametrize(
    ("most", "kept", "truncated"),
    [(35, "sssss" + "a" * 10 + "b" * 10 + "c" * 10, 0), (34, "sssss" + "b" * 10 + "c" * 10, 10)],
)
def test_no_more_messages_go_than_must(most: int, kept: str, truncated: int) -> None:
    fitted = fit_messages(encode, [SYSTEM, *TURNS], most)
    assert (text(fitted), fitted.truncated_tokens) == (kept, truncated)


def test_system_and_last_message_stay_whether_or_not_they_fit() -> None:
    assert text(fit_messages(encode, [SYSTEM, *TURNS], 15)) == "sssss" + "c" * 10
    assert text(fit_messages(encode, [SYSTEM, *TURNS], 3)) == "sssss" + "c" * 10
    assert fit_messages(encode, TURNS[-1:], 3) == Fitted(tuple(b"c" * 10))


def test_what_the_template_refuses_goes_too() -> None:
    assert text(fit_messages(strict, [SYSTEM, *TURNS], 34)) == "sssss" + "c" * 10


def test_tokens_keep_their_beginning_and_their_end() -> None:
    tokens = tuple(range(10))
    assert fit_tokens(tokens, 10, 0) == Fitted(tokens)
    assert fit_tokens(tokens, 6, 2) == Fitted((0, 1, 6, 7, 8, 9), 4)
    assert fit_tokens(tokens, 6, -1) == fit_tokens(tokens, 6, 0) == Fitted((4, 5, 6, 7, 8, 9), 4)
    assert fit_tokens(tokens, 3, 8) == Fitted((0, 1, 2), 7)


def test_answer_gets_what_it_asks_for_and_a_half_at_most() -> None:
    assert prompt_room(100, 10) == 90
    assert prompt_room(100, 80) == 50
    assert prompt_room(100, None) == 75
    assert prompt_room(2, None) == 1


def test_a_complete_text_keeps_what_it_ends_with() -> None:
    assert fit_whole([1, 2, 3, 9], 4, 1) == Fitted((1, 2, 3, 9))
    assert fit_whole([1, 2, 3, 9], 3, 1) == Fitted((1, 2, 9), 1)
    assert fit_whole([1, 2, 3], 2, 0) == Fitted((1, 2), 1)
    assert fit_whole([1, 2, 3, 8, 9], 1, 2) == Fitted((9,), 4)
