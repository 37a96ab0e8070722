"""A question has an answer, and none if it is left."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import OptionList, Static

from llmd_tui.screens.chat.widgets.dialogs import AskLine, AskText, Choose, Confirm
from llmd_tui.widgets.dialog import Dialog
from tests.tui.screens.chat.widgets.shown_widget import alone

ROWS = (("a", "first of all"), ("b", "second"), ("c", "third of all"))


@pytest.mark.parametrize(
    ("dialog", "keys", "answer"),
    [
        (Confirm("Delete", "Really?"), ("y",), True),
        (Confirm("Delete", "Really?"), ("n",), False),
        (Confirm("Delete", "Really?"), ("escape",), None),
        (AskLine("Title", "old"), ("!", "enter"), "old!"),
        (AskLine("Title", "old"), ("!", "escape"), None),
        (AskText("System", "old"), ("enter", "N", "ctrl+s"), "old\nN"),
        (AskText("System", "old"), ("escape",), None),
        (Choose("One", ROWS), ("enter",), "a"),
        (Choose("One", ROWS, chosen="b"), ("enter",), "b"),
        (Choose("One", ROWS), ("o", "f", "space", "t", "h", "enter"), "c"),
        (Choose("One", ROWS), ("down", "enter"), "b"),
        (Choose("One", ROWS), ("z", "enter", "escape"), None),
    ],
    ids=lambda value: "" if isinstance(value, Dialog) else str(value),
)
async def test_keys_answer(dialog: Dialog[Any], keys: tuple[str, ...], answer: object) -> None:
    answers: list[object] = []
    async with alone(Static()) as (pilot, app):
        await app.push_screen(dialog, answers.append)
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
    assert answers == [answer]


async def test_a_row_is_chosen_with_the_mouse() -> None:
    answers: list[object] = []
    async with alone(Static()) as (pilot, app):
        await app.push_screen(Choose("One", ROWS), answers.append)
        await pilot.pause()
        await pilot.click(OptionList, offset=(2, 1))
        await pilot.pause()
    assert answers == ["b"]
