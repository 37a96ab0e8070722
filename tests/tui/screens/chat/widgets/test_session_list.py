from __future__ import annotations

from datetime import date, datetime

from textual.widgets import Input, OptionList

from llmd_tui.screens.chat.store.records import Session
from llmd_tui.screens.chat.widgets.session_list import SessionList
from tests.tui.screens.chat.widgets.shown_widget import alone

TODAY = date(2026, 3, 12)
NOON = datetime(2026, 3, 12, 12).timestamp()  # noqa: DTZ001 - as at the screen
SESSIONS = (
    Session(3, "three", updated=NOON, pinned=True),
    Session(2, "two", updated=NOON),
    Session(1, "", updated=NOON),
)


async def test_chats_are_shown_in_their_folders_and_opened() -> None:
    listed = SessionList()
    async with alone(listed) as (pilot, app):
        listed.show(SESSIONS, TODAY, current=2)
        options = listed.query_one(OptionList)
        rows = [str(option.prompt) for option in options.options]
        assert rows == ["─ Pinned", "  three", "─ Today", "▸ two", "  New chat"]
        listed.focus_list()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert [one.session_id for one in app.posted if isinstance(one, SessionList.Opened)] == [1]


async def test_the_cursor_stays_on_its_chat_when_the_list_changes() -> None:
    listed = SessionList()
    async with alone(listed) as (pilot, app):
        listed.show(SESSIONS, TODAY, current=2)
        listed.focus_list()
        await pilot.press("up")
        listed.show((Session(9, "newer", updated=NOON), *SESSIONS), TODAY, current=9)
        await pilot.press("x", "p")
        await pilot.pause()
        wanted = [
            (one.action, one.session.session_id) for one in app.posted if isinstance(one, SessionList.Wanted)
        ]
        assert wanted == [("delete", 3), ("pin", 3)]


async def test_words_are_searched_for_as_they_are_typed() -> None:
    listed = SessionList()
    async with alone(listed) as (pilot, app):
        listed.show((), TODAY, current=0)
        assert "no chats yet" in str(listed.query_one(OptionList).options[0].prompt)
        listed.focus_list()
        await pilot.press("slash", *"ze")
        await pilot.pause()
        assert listed.searched == "ze"
        assert sum(isinstance(one, SessionList.Refreshed) for one in app.posted) == 2
        listed.show((), TODAY, current=0)
        assert "nothing found" in str(listed.query_one(OptionList).options[0].prompt)
        await pilot.press("enter")
        assert not listed.query_one(Input).has_focus


async def test_the_archive_says_that_it_is_one() -> None:
    listed = SessionList()
    async with alone(listed) as (pilot, app):
        listed.focus_list()
        await pilot.press("v")
        await pilot.pause()
        assert listed.archived
        assert any(isinstance(one, SessionList.Refreshed) for one in app.posted)
        listed.show(SESSIONS, TODAY, current=0)
        assert "archived chats" in str(listed.query_one(OptionList).options[0].prompt)
