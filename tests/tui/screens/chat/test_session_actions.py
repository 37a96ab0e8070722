"""What the keys of the list of chats do."""

from __future__ import annotations

from textual.widgets import OptionList

from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.widgets.dialogs import AskLine, Confirm
from llmd_tui.screens.chat.widgets.session_list import SessionList
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen


def listed(chat: Chat) -> list[str]:
    options = chat.screen.query_one(SessionList).query_one(OptionList)
    return [str(option.prompt).strip() for option in options.options]


async def test_a_chat_is_pinned_renamed_archived_and_deleted(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("ctrl+l", "p")
        await shown.until(lambda: listed(shown) == ["─ Pinned", "▸ one"])
        await shown.pilot.press("r")
        await shown.until_open(AskLine)
        await shown.pilot.press("!", "enter")
        await shown.until(lambda: listed(shown) == ["─ Pinned", "▸ one!"])
        await shown.until_closed()
        await shown.pilot.press("a")
        await shown.until(lambda: listed(shown) == ["no chats yet"])
        await shown.pilot.press("v")
        await shown.until(lambda: "▸ one!" in listed(shown))
        await shown.pilot.press("x")
        await shown.until_open(Confirm)
        await shown.pilot.press("y")
        await shown.until(lambda: "▸ one!" not in listed(shown))
        assert await shown.screen.store.call(ChatStore.sessions, archived=True) == []
        assert shown.texts == []


async def test_another_chat_than_the_shown_one_is_deleted_alone(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        other = shown.screen.chat.session
        await shown.pilot.press("ctrl+n")
        await shown.until(lambda: shown.texts == [])
        await shown.ask("two")
        shown.screen.act_on_session("delete", other)
        await shown.until_open(Confirm)
        await shown.pilot.press("y")
        await shown.until(lambda: listed(shown) == ["─ Today", "▸ two"])
        assert shown.texts == ["two", "answer to two"]
