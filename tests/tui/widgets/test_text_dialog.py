from __future__ import annotations

from textual.app import App
from textual.widgets import Button

from llmd_tui.widgets.text_dialog import TextDialog
from tests.tui.pilots import press, text


def taken(name: str) -> str:
    return f"{name} is taken" if name == "ab" else ""


async def test_a_text_is_accepted_once_nothing_is_wrong_with_it() -> None:
    app = App[None]()
    answers: list[str | None] = []
    async with app.run_test(size=(60, 16)) as pilot:
        await app.push_screen(TextDialog("Copy", "A new name", fault=taken), answers.append)
        await pilot.pause()
        await press(pilot, "enter")
        assert "type a name, or press Esc" in text(app)
        await press(pilot, "a", "b", "enter")
        assert "ab is taken" in text(app)
        await press(pilot, "1", "space", "enter")
        assert answers == ["ab1"]


async def test_it_can_be_closed_and_clicked() -> None:
    app = App[None]()
    answers: list[str | None] = []
    async with app.run_test(size=(60, 16)) as pilot:
        for button in ("ok", "cancel"):
            await app.push_screen(TextDialog("Copy", "A new name", value="old"), answers.append)
            await pilot.pause()
            await pilot.click(next(one for one in app.screen.query(Button) if one.name == button))
            await pilot.pause()
        assert answers == ["old", None]
