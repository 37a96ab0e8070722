from __future__ import annotations

import asyncio

from llmd_tui.screens.chat.open_chat import UNSAVED, OpenChat
from llmd_tui.screens.chat.store.background import BackgroundStore
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Attachment, Content, Settings
from llmd_tui.screens.chat.store.saved_files import Saved, Turn


async def test_a_new_chat_is_kept_with_its_first_message(store: BackgroundStore) -> None:
    chat = OpenChat(store, UNSAVED)
    await chat.change(draft="")
    assert await store.call(ChatStore.sessions) == []
    question = await chat.add("user", Content("What is\npaged attention?"), None)
    answer = await chat.add("assistant", Content(), question.message_id)
    await chat.update(answer.message_id, Content("a way"))
    again = await OpenChat.load(store, chat.session.session_id)
    assert [one.content.text for one in again.path] == ["What is\npaged attention?", "a way"]
    assert again.session.title == "What is"


async def test_long_titles_are_shortened_and_files_name_a_chat_without_text(store: BackgroundStore) -> None:
    long = OpenChat(store, UNSAVED)
    await long.add("user", Content("x" * 100), None)
    assert long.session.title == "x" * 59 + "…"
    file = OpenChat(store, UNSAVED)
    await file.add("user", Content(attachments=(Attachment("a.txt", "text"),)), None)
    assert file.session.title == "a.txt"


async def test_branches_and_what_is_shown_of_them_are_kept(store: BackgroundStore) -> None:
    chat = OpenChat(store, UNSAVED)
    question = await chat.add("user", Content("one"), None)
    first = await chat.add("assistant", Content("first"), question.message_id)
    await chat.add("assistant", Content("second"), question.message_id)
    assert await chat.turn_to(first.message_id, 1)
    assert not await chat.turn_to(first.message_id, -1)
    assert await chat.turn_to(chat.path[-1].message_id, -1)
    again = await OpenChat.load(store, chat.session.session_id)
    assert [one.content.text for one in again.path] == ["one", "first"]
    await again.remove(first.message_id)
    last = await OpenChat.load(store, chat.session.session_id)
    assert [one.content.text for one in last.path] == ["one", "second"]


async def test_a_draft_and_settings_are_reason_enough_to_keep_a_chat(store: BackgroundStore) -> None:
    chat = OpenChat(store, UNSAVED)
    chat.choose(Settings(model="guide"))
    assert await OpenChat.with_draft(store) is None
    await chat.change(draft="half a")
    found = await OpenChat.with_draft(store)
    assert found is not None
    assert (found.session.draft, found.settings.model) == ("half a", "guide")


async def test_a_draft_and_a_message_that_are_kept_at_once_make_one_chat(store: BackgroundStore) -> None:
    chat = OpenChat(store, UNSAVED)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(chat.change(draft="half"))
        tasks.create_task(chat.add("user", Content("whole"), None))
    (session,) = await store.call(ChatStore.sessions)
    assert (session.title, session.draft) == ("whole", "half")


async def test_a_saved_conversation_goes_on_as_a_chat(store: BackgroundStore) -> None:
    saved = Saved("guide", "be brief", {"seed": 7}, turns=(Turn("one", "first"), Turn("two", "second")))
    chat = await OpenChat.restore(store, saved, "trip")
    again = await OpenChat.load(store, chat.session.session_id)
    assert [one.content.text for one in again.path] == ["one", "first", "two", "second"]
    assert (again.session.title, again.settings) == (
        "trip",
        Settings(model="guide", system="be brief", seed=7),
    )
