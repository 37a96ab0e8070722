from __future__ import annotations

import pytest

from llmd_tui.screens.chat.store.records import Content, Message, Session


@pytest.mark.parametrize(
    ("content", "left_out"),
    [
        (Content("whole"), False),
        (Content("half", ending="stopped"), False),
        (Content("", ending="failed"), True),
        (Content(""), False),
    ],
)
def test_answers_that_failed_without_a_text_are_left_out(content: Content, *, left_out: bool) -> None:
    assert Message(2, 1, "assistant", content).is_left_out is left_out


def test_a_chat_without_a_title_has_a_name() -> None:
    assert (Session(1).name, Session(1, "Weather").name) == ("New chat", "Weather")
