from __future__ import annotations

from typing import cast

from llmd_tui.commands import Entry
from llmd_tui.screens.chat.chat_actions import ACTIONS
from llmd_tui.screens.chat.commands import MESSAGE_ACTIONS, SESSION_ACTIONS, WITHOUT_ARGUMENT, ChatCommands
from llmd_tui.screens.chat.message_actions import ACTIONS as OF_MESSAGES
from llmd_tui.screens.chat.session_actions import ACTIONS as OF_SESSIONS
from tests.tui.screens.chat.conftest import OpenChatScreen


def test_the_palette_offers_only_what_there_is() -> None:
    assert set(WITHOUT_ARGUMENT) <= set(ACTIONS)
    assert set(MESSAGE_ACTIONS) <= set(OF_MESSAGES)
    assert set(SESSION_ACTIONS) <= set(OF_SESSIONS)


async def test_everything_is_in_the_palette_and_works_from_there(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        entries = {
            entry.title: entry for entry in cast("list[Entry]", list(ChatCommands(shown.screen).entries()))
        }
        assert {"Chat: stop the answer", "Chat: /model", "Chat: regenerate message"} <= set(entries)
        entries["Chat: copy message"].run()
        await shown.until(lambda: any("the message" in notice for notice in shown.notices))
        entries["Chat: /attach …"].run()
        assert shown.screen.prompt.text == "/attach "
        entries["Chat: /new"].run()
        await shown.until(lambda: shown.texts == [])
