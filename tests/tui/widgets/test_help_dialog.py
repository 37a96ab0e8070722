from __future__ import annotations

from textual.widgets import Static

from llmd_tui.widgets.help_dialog import HelpDialog
from tests.tui.screens.chat.widgets.shown_widget import alone


async def test_the_help_is_left_with_escape() -> None:
    async with alone(Static()) as (pilot, app):
        await app.push_screen(HelpDialog("Commands", "/help  list [these]"))
        await pilot.pause()
        shown = app.screen.query_one("VerticalScroll Static", Static)
        assert str(shown.content) == "/help  list [these]"
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpDialog)
