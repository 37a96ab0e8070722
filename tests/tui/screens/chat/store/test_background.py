from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Content, Settings


def clock() -> float:
    return 1.0


async def test_calls_are_done_in_their_order_and_kept_at_the_end(tmp_path: Path) -> None:
    store = BackgroundStore(lambda: ChatStore.open(tmp_path, clock), lambda: ChatStore.in_memory(clock))
    assert await store.failure() == ""
    session = await store.call(ChatStore.create, Settings())
    await store.call(ChatStore.add, session.session_id, None, "user", Content("hello"))
    await store.call(ChatStore.change, session.session_id, title="named")
    store.close()
    store.close()
    assert [one.title for one in ChatStore.open(tmp_path, clock).sessions()] == ["named"]
    with pytest.raises(LlmdError, match="closed"):
        await store.call(ChatStore.sessions)


async def test_chats_that_cannot_be_kept_stay_in_memory_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = BackgroundStore(
        lambda: ChatStore.open(tmp_path / "file", clock), lambda: ChatStore.in_memory(clock)
    )
    assert "cannot be read or written" in await store.failure()
    await store.call(ChatStore.create, Settings(), "short")
    assert [one.title for one in await store.call(ChatStore.sessions)] == ["short"]
    store.close()
