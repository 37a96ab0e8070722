"""The draft is kept and counted while it is written."""

from __future__ import annotations

from pathlib import Path

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.request_body import COUNT_ROUTE
from llmd_tui.screens.chat.room import Room
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Settings
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen


def gauge(chat: Chat) -> str:
    return chat.screen.composer.gauge.render().plain


async def test_a_draft_survives(chat: OpenChatScreen, folder: Path) -> None:
    async with chat() as shown:
        await shown.type("half a ques", "t")
        await shown.until(lambda: shown.screen.chat.session.draft == "half a quest")
        await shown.settle()
        (kept,) = ChatStore.open(folder, lambda: 1.0).sessions()
        assert kept.draft == "half a quest"
    async with chat() as again:
        assert again.screen.prompt.text == "half a quest"
        await again.ask("half a question")
        assert again.screen.chat.session.draft == ""


async def test_the_gauge_counts_the_conversation_with_the_draft(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.until(lambda: "guide" in gauge(shown))
        await shown.type("hello", "!")
        await shown.until(lambda: "12/100 tokens, an answer may have 88" in gauge(shown))
        _, body = next(one for one in reversed(shown.daemon.asked) if one[0] == COUNT_ROUTE)
        assert body["messages"] == [{"role": "user", "content": "hello!"}]
        shown.daemon.posts[COUNT_ROUTE] = {"input_tokens": 130}
        await shown.pilot.press("!")
        await shown.until(lambda: "130/100 tokens: too long by 31" in gauge(shown))
        shown.daemon.posts[COUNT_ROUTE] = LlmdError("gone")
        await shown.pilot.press("!")
        await shown.until(lambda: "tokens" not in gauge(shown))


async def test_the_gauge_names_the_model_and_its_settings(chat: OpenChatScreen) -> None:
    async with chat((200, 40)) as shown:
        await shown.screen.set_settings(Settings("guide", "be brief", 0.5, max_tokens=10))
        shown.screen.composer.gauge.show(Room(5, 100, 10))
        assert gauge(shown).startswith("guide · system prompt · temperature 0.5, max_tokens 10")
        assert "5/100 tokens, an answer may have 10" in gauge(shown)
