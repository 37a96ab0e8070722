from __future__ import annotations

import pytest
from textual.app import App
from textual.widgets import Button

from llmd_tui.widgets.choice import Choice, Option, confirmation
from tests.tui.pilots import press, text, until

OPTIONS = (Option("", "Keep"), Option("end", "End it", is_destructive=True))


@pytest.mark.parametrize(
    ("keys", "answer"),
    [(("enter",), ""), (("k",), ""), (("e",), "end"), (("tab", "enter"), "end"), (("escape",), None)],
    ids=["the first has the focus", "letter", "other letter", "tab", "escape"],
)
async def test_keys_choose(keys: tuple[str, ...], answer: str | None) -> None:
    app = App[None]()
    answers: list[str | None] = []
    async with app.run_test(size=(60, 14)) as pilot:
        await app.push_screen(Choice("The pull", "Does it go on?", OPTIONS), answers.append)
        await pilot.pause()
        await press(pilot, *keys)
        assert answers == [answer]


async def test_buttons_can_be_clicked_and_keys_are_shown() -> None:
    app = App[None]()
    answers: list[str | None] = []
    async with app.run_test(size=(60, 14)) as pilot:
        await app.push_screen(confirmation("Remove it?", "It frees 2 GiB.", yes="Remove"), answers.append)
        await until(pilot, lambda: "r Remove" in text(app))
        assert "c Cancel" in text(app)
        await pilot.click(app.screen.query(Button).last())
        assert answers == ["yes"]
