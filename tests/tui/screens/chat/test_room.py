from __future__ import annotations

import pytest

from llmd_tui.screens.chat.room import Room, beginnings, fewest_dropped, prompt_limit, room_words
from llmd_tui.screens.chat.store.records import Content, Message

PATH = [Message(n, n - 1 or None, "user" if n % 2 else "assistant", Content("x")) for n in range(1, 7)]


@pytest.mark.parametrize(
    ("room", "words", "over"),
    [
        (Room(812, 1024), "812/1024 tokens, an answer may have 212", False),
        (Room(812, 1024, 100), "812/1024 tokens, an answer may have 100", False),
        (Room(1024, 1024), "1024/1024 tokens: too long by 1, /drop removes the oldest turns", True),
        (Room(12, None), "12 tokens", False),
    ],
)
def test_the_room_is_said_before_sending(room: Room, words: str, *, over: bool) -> None:
    assert (room_words(room), room.is_over) == (words, over)


def test_the_share_is_at_most_one() -> None:
    assert [Room(used, 100).share for used in (0, 50, 200)] == [0.0, 0.5, 1.0]
    assert Room(5, None).share == 0.0
    assert Room(5, None, 9).left == 9


def test_a_shortened_conversation_leaves_room_for_an_answer() -> None:
    assert prompt_limit(1000, None) == 750
    assert prompt_limit(1000, 100) == 900
    assert prompt_limit(1000, 5000) == 500


async def test_the_fewest_oldest_turns_are_dropped() -> None:
    candidates = beginnings(PATH, None)
    assert candidates == [3, 5, 7]  # a later question, or nothing of what was said

    async def tokens(first: int) -> int:
        return 10 * (7 - first)

    assert [await fewest_dropped(candidates, tokens, limit) for limit in (45, 40, 39, 20, 0)] == [
        3,
        3,
        5,
        5,
        7,
    ]


def test_what_was_dropped_before_is_not_dropped_again() -> None:
    assert beginnings(PATH, 3) == [5, 7]
    assert beginnings([], None) == []
