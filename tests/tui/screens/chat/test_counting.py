from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd_tui.screens.chat.counting import count, room, shortened
from llmd_tui.screens.chat.open_chat import UNSAVED, OpenChat
from llmd_tui.screens.chat.room import Room
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.records import Content
from tests.tui.scripted_daemon import ScriptedDaemon


class CountingDaemon(ScriptedDaemon):
    """Every message has ten tokens."""

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"input_tokens": 10 * len(body["messages"])}


async def conversation(store: BackgroundStore, turns: int) -> OpenChat:
    chat = OpenChat(store, UNSAVED)
    for number in range(turns):
        await chat.add("user", Content(f"question {number}"), chat.tree.leaf)
        await chat.add("assistant", Content(f"answer {number}"), chat.tree.leaf)
    return chat


async def test_the_draft_counts_with_the_conversation(store: BackgroundStore) -> None:
    chat = await conversation(store, 2)
    assert await room(CountingDaemon(), chat, Content("next"), 100) == Room(50, 100)
    assert await room(CountingDaemon(), chat, None, None) == Room(40, None)
    assert await count(CountingDaemon(), {"messages": []}) == 0


async def test_the_fewest_oldest_turns_are_dropped(store: BackgroundStore) -> None:
    chat = await conversation(store, 4)
    questions = [one.message_id for one in chat.path if one.role == "user"]
    assert await shortened(CountingDaemon(), chat, Content("next"), 100) == questions[1]
    assert await shortened(CountingDaemon(), chat, Content("next"), 50) == questions[3]
    assert await shortened(CountingDaemon(), chat, Content("next"), 10) == chat.path[-1].message_id + 1


async def test_without_a_draft_the_last_turn_stays(store: BackgroundStore) -> None:
    chat = await conversation(store, 2)
    assert await shortened(CountingDaemon(), chat, None, 10) == chat.path[2].message_id
    assert await shortened(CountingDaemon(), await conversation(store, 1), None, 10) is None
    assert await shortened(CountingDaemon(), OpenChat(store, UNSAVED), Content("x"), 10) is None
