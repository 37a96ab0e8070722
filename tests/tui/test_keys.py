"""The text of the help: the keys of what is focused, of the screen, and of every screen."""

from __future__ import annotations

import re

from textual.widgets import Static

from llmd_tui.keys import keys_text
from llmd_tui.widgets.help_dialog import HelpDialog
from tests.tui.conftest import MakeTui, settled
from tests.tui.widgets.test_key_footer import real_screen


def headings(shown: str) -> list[str]:
    """Return the lines that are not indented."""
    return [line for line in shown.splitlines() if line and not line.startswith(" ")]


async def test_keys_stand_under_what_they_belong_to(make_tui: MakeTui) -> None:
    tui = make_tui(real_screen("models"))
    async with tui.run_test() as pilot:
        await settled(pilot)
        shown = re.sub(" {2,}", "  ", keys_text(tui.screen).plain)
        assert headings(shown) == ["The screen models", "The table", "On every screen", "To move and to edit"]
        screen, table, everywhere, moving = shown.split("\n\n")
        assert "y  Copy name" in screen  # the footer has no room for it
        assert "x, del  Remove" in screen
        assert "Reverse" in table
        assert "1  Open models" in everywhere
        assert "↑, k  Up" in moving


async def test_keys_that_do_nothing_now_are_left_out(make_tui: MakeTui) -> None:
    tui = make_tui(real_screen("plugins"))
    async with tui.run_test() as pilot:
        await settled(pilot)
        assert "Show all" not in keys_text(tui.screen).plain  # everything is shown
        await pilot.press("slash")
        await settled(pilot)
        assert "Show all" in keys_text(tui.screen).plain


async def test_the_help_says_what_titles_mean(make_tui: MakeTui) -> None:
    tui = make_tui(real_screen("monitor"))
    async with tui.run_test() as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await settled(pilot)
        assert isinstance(tui.screen, HelpDialog)
        shown = str(tui.screen.query_one("VerticalScroll Static", Static).content)
        assert "What the titles mean" in shown
        assert "time to the first token" in shown
        await pilot.press("escape")
        assert not isinstance(tui.screen, HelpDialog)
