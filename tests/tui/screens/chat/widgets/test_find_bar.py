from __future__ import annotations

from textual.widgets import Input, Label

from llmd_tui.screens.chat.store.records import Content, Message
from llmd_tui.screens.chat.widgets.find_bar import FindBar
from tests.tui.screens.chat.widgets.shown_widget import alone

PATH = tuple(Message(n, n - 1 or None, "user", Content("zebra")) for n in range(1, 4))


async def test_keys_step_to_older_and_newer_messages() -> None:
    bar = FindBar()
    async with alone(bar) as (pilot, app):
        assert not bar.display
        bar.open("zebra")
        await pilot.press("enter", "up", "down")
        await pilot.pause()
        steps = [message.step for message in app.posted if isinstance(message, FindBar.Stepped)]
        assert steps == [-1, -1, -1, 1]
        assert [bar.found(PATH, step) for step in steps] == [3, 2, 1, 2]
        assert str(bar.query_one(Label).content) == "2 of 3"


async def test_other_words_begin_another_search() -> None:
    bar = FindBar()
    async with alone(bar):
        bar.open("zebra")
        assert bar.found(PATH, -1) == 3
        bar.query_one(Input).value = "lion"
        assert bar.found(PATH, -1) is None
        assert str(bar.query_one(Label).content) == "nothing found"
