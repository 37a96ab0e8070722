from __future__ import annotations

from textual.app import App, ComposeResult

from llmd_tui.widgets.dialog import Dialog, text
from tests.tui.pilots import press, until
from tests.tui.pilots import text as shown


class Plain(Dialog[str]):
    def compose_body(self) -> ComposeResult:
        yield text("a \x1b[31mred text")


async def test_a_dialog_shows_its_keys_and_closes_without_an_answer() -> None:
    app = App[None]()
    answers: list[str | None] = []
    async with app.run_test(size=(60, 14)) as pilot:
        await app.push_screen(Plain("A [title]"), answers.append)
        await until(pilot, lambda: "esc Close" in shown(app))
        assert "A [title]" in shown(app)
        assert "a [31mred text" in shown(app)
        await press(pilot, "escape")
        assert answers == [None]
