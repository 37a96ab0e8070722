"""Keys, sizes and pictures of the chat."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llmd_tui import actions
from llmd_tui.screens.chat.screen import ChatScreen
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Figures, Settings
from llmd_tui.screens.chat.widgets.find_bar import FindBar
from llmd_tui.screens.chat.widgets.message_view import MessageView
from llmd_tui.screens.chat.widgets.session_list import SessionList
from llmd_tui.screens.monitor.screen import MonitorScreen
from llmd_tui.widgets.help_dialog import HelpDialog
from tests.tui.conftest import MakeTui
from tests.tui.pictures import SIZES, THEMES, assert_picture
from tests.tui.screens.chat.conftest import OpenChatScreen, until
from tests.tui.scripted_daemon import ScriptedDaemon, model

ANSWER = """Give a *number* with `--slots`:

```bash
llmd serve MODEL --slots 16
```

- the rest **wait**
- the default is 8
"""
FIGURES = Figures("guide", 46, 32, 39, 26.0, 363.2, 7)


def fill(folder: Path) -> None:
    """Write chats that show everything a chat can have."""
    store = ChatStore.open(folder, time.time)
    for title in ("Which devices are there?", "How do I serve two models at once?", "A plan"):
        session = store.create(Settings(model="guide"), title)
    store.change(session.session_id, pinned=True)
    session = store.create(Settings(model="guide", temperature=0.5, system="be brief"), "Slots")
    notes = Content("How many run at once?", attachments=(Attachment("notes.md", "x" * 40),))
    first = store.add(session.session_id, None, "user", notes)
    store.add(session.session_id, first.message_id, "assistant", Content("Eight.", figures=FIGURES))
    whole = Content(ANSWER, "Slots, then.", (Call("search", '{"q": "slots"}'),), figures=FIGURES)
    answer = store.add(session.session_id, first.message_id, "assistant", whole)
    second = store.add(session.session_id, answer.message_id, "user", Content("And then?"))
    store.add(
        session.session_id, second.message_id, "assistant", Content("Then", ending="stopped", figures=FIGURES)
    )
    store.change(session.session_id, draft="Next question")
    store.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_looks_as_it_should(
    chat: OpenChatScreen, daemon: ScriptedDaemon, folder: Path, size: tuple[int, int], theme: str
) -> None:
    fill(folder)
    daemon.snapshot(models=(model(),))
    async with chat(size) as shown:
        shown.tui.theme = theme
        await shown.pilot.press("tab")  # the cursor of the prompt blinks
        await shown.until(lambda: "12/100" in shown.screen.composer.gauge.render().plain)
        for _ in range(5):
            await shown.pilot.pause()
        shown.tui.show_now()
        await shown.pilot.pause()
        await assert_picture(shown.tui, f"chat-{size[0]}x{size[1]}-{theme}")


async def test_digits_are_typed_in_the_prompt_and_open_screens_from_the_messages(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    daemon.gets["/v1/models"] = {"data": []}
    tui = make_tui(ChatScreen, MonitorScreen, first="chat")
    async with tui.run_test() as pilot:
        await pilot.press("2")
        assert isinstance(tui.screen, ChatScreen)
        assert tui.screen.prompt.text == "2"
        await pilot.press("tab", "question_mark")
        await until(lambda: isinstance(tui.screen, HelpDialog))
        await pilot.press("escape", "2")  # the prompt has not taken the cursor again
        await pilot.pause()
        assert tui.current_mode == "monitor"


async def test_narrow_terminals_show_the_list_on_a_key(chat: OpenChatScreen) -> None:
    async with chat((80, 24)) as shown:
        listed = shown.screen.query_one(SessionList)
        assert listed.size.width == 0
        await shown.pilot.press("ctrl+l")
        assert listed.has_focus_within
        assert listed.size.width > 0
        await shown.pilot.press("escape")
        await shown.pilot.pause()
        assert listed.size.width == 0 or listed.styles.display == "none"
        assert shown.screen.prompt.has_focus


async def test_wide_terminals_hide_the_list_on_a_key(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        listed = shown.screen.query_one(SessionList)
        await shown.pilot.press("ctrl+l", "ctrl+l")
        assert listed.styles.display == "none"
        assert shown.screen.prompt.has_focus


async def test_the_cursor_goes_from_the_prompt_over_the_messages_and_back(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("tab")
        assert shown.view(-1).has_focus
        assert shown.screen.prompt.border_subtitle == "Esc: write here"
        await shown.pilot.press("up")
        assert shown.view(0).has_focus
        await shown.pilot.press("down", "down")
        await shown.until(lambda: shown.screen.prompt.has_focus)


async def test_escape_never_leaves_the_prompt(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.pilot.press("escape", *"or5", "escape", "x")
        assert shown.screen.prompt.has_focus
        assert shown.screen.prompt.text == "or5x"
        assert shown.screen.prompt.border_subtitle == ""
        await shown.pilot.press("tab", "escape", "y")
        assert shown.screen.prompt.text == "or5xy"
        assert len(shown.bodies) == 1


async def test_words_are_found_in_the_chat(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        for text in ("zebra", "horse", "another zebra"):
            await shown.ask(text, "yes")
        await shown.pilot.press("tab", "slash")
        await shown.until(lambda: shown.screen.query_one(FindBar).display)
        await shown.pilot.press(*"zebra", "enter")
        await shown.until(lambda: shown.view(4).has_class("found"))
        await shown.pilot.press("enter")
        await shown.until(lambda: shown.view(0).has_class("found"))
        await shown.pilot.press("escape")
        assert not shown.screen.query(MessageView).filter(".found")
        assert shown.screen.prompt.has_focus


async def test_all_chats_are_searched_and_the_found_one_opened(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("zebra")
        await shown.pilot.press("ctrl+n")
        await shown.until(lambda: shown.texts == [])
        await shown.ask("horse")
        await shown.pilot.press("ctrl+l", "slash", *"zeb", "enter", "enter")
        await shown.until(lambda: shown.texts == ["zebra", "answer to zebra"])
        assert shown.screen.prompt.has_focus


async def test_a_model_that_is_chosen_elsewhere_begins_a_chat(
    chat: OpenChatScreen, daemon: ScriptedDaemon
) -> None:
    async with chat() as shown:
        daemon.snapshot(models=(model(),))
        await shown.until(lambda: shown.tui.follower.status == "connected")
        await shown.ask("one")
        shown.tui.post_message(actions.ChatWith("other"))
        await shown.until(lambda: shown.screen.chat.settings.model == "other")
        await shown.until(lambda: shown.texts == [])


async def test_ctrl_c_copies_what_is_selected_in_the_prompt(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.type("some words", "shift+home", "ctrl+c")
        await shown.until(lambda: shown.notices)
        assert (shown.tui.folders.state / "copied.txt").read_text() == "some words"


@pytest.fixture
def blocked(folder: Path) -> None:
    folder.write_text("in the way")


@pytest.mark.usefixtures("blocked")
async def test_chats_that_cannot_be_kept_are_said_and_work(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        assert any("Chats are not kept." in notice for notice in shown.notices)
        await shown.ask("one")
        assert shown.texts == ["one", "answer to one"]
