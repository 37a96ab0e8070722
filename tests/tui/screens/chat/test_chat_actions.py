"""The slash commands on a screen."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import Any

from textual.screen import Screen

from llmd.cli.conversation import Conversation, Turn
from llmd.cli.saved_conversations import SavedConversations
from llmd_tui.screens.chat.store.records import Settings
from llmd_tui.screens.chat.widgets.dialogs import AskText, Choose
from llmd_tui.screens.chat.widgets.find_bar import FindBar
from llmd_tui.screens.chat.widgets.settings_dialog import SettingsDialog
from llmd_tui.widgets.help_dialog import HelpDialog
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen


def settings(chat: Chat) -> Settings:
    return chat.screen.chat.settings


def is_open(chat: Chat, dialog: type[Screen[Any]]) -> bool:
    return isinstance(chat.tui.screen, dialog)


def has_said(chat: Chat, words: str) -> bool:
    return any(words in notice for notice in chat.notices)


async def test_settings_are_changed_by_commands_and_kept_with_the_chat(
    chat: OpenChatScreen, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    async with chat() as shown:
        for line in ("/set temp 0.5", "/think off", "/system be brief", f"/schema {schema}", "/model other"):
            await shown.type(line)
        expected = Settings(
            "other", "be brief", 0.5, thinking=False, schema_file=str(schema), schema={"type": "object"}
        )
        await shown.until(lambda: settings(shown) == expected)
        session = shown.screen.chat.session.session_id
        await shown.type("/new")
        await shown.until(lambda: settings(shown) == Settings("other"))
        await shown.screen._open_session(session)
        assert settings(shown) == expected
        await shown.type("/reset")
        await shown.until(lambda: shown.screen.chat.session.session_id == 0)
        assert settings(shown) == expected
        assert shown.tui.preferences.model == "other"


async def test_commands_without_an_argument_ask_for_it(chat: OpenChatScreen) -> None:
    dialogs: dict[str, type[Screen[Any]]] = {
        "/system": AskText,
        "/set": SettingsDialog,
        "/model": Choose,
        "/help": HelpDialog,
    }
    async with chat() as shown:
        for line, dialog in dialogs.items():
            await shown.type(line)
            await shown.until(partial(is_open, shown, dialog))
            await shown.pilot.press("escape")
        await shown.type("/find")
        await shown.until(lambda: shown.screen.query_one(FindBar).display)
        assert settings(shown) == Settings("guide")


async def test_mistakes_are_said(chat: OpenChatScreen, tmp_path: Path) -> None:
    lines = {
        "/nonsense": "There is no command /nonsense; /help lists them.",
        "/set heat 1": "there is no setting heat",
        f"/attach {tmp_path / 'none'}": "cannot be read",
        "/export chat.txt": "must end in .md or .json",
        "/load": "No conversation has been saved",
        "/load trip": "there is no saved conversation trip",
        "/save": "Write /save NAME.",
        "/drop": "There is nothing to drop.",
    }
    async with chat() as shown:
        for line, words in lines.items():
            await shown.type(line)
            await shown.until(partial(has_said, shown, words))
        assert shown.bodies == []


async def test_conversations_go_to_llmd_chat_and_come_from_it(chat: OpenChatScreen, folder: Path) -> None:
    saved = SavedConversations(folder / "conversations")
    saved.save("trip", Conversation("guide", turns=[Turn("where?", "Oslo")]))
    async with chat() as shown:
        await shown.type("/load")
        await shown.until(lambda: isinstance(shown.tui.screen, Choose))
        await shown.pilot.press("enter")
        await shown.until(lambda: shown.texts == ["where?", "Oslo"])
        await shown.ask("when?", "now")
        await shown.type("/save again")
        await shown.until(lambda: "again" in saved.names())
        assert saved.load("again").turns == [Turn("where?", "Oslo"), Turn("when?", "now")]


async def test_a_chat_is_exported_and_its_request_copied(chat: OpenChatScreen, tmp_path: Path) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.type(f"/export {tmp_path}/chat.json")
        await shown.until((tmp_path / "chat.json").exists)
        assert len(json.loads((tmp_path / "chat.json").read_text())["messages"]) == 2
        await shown.type("/curl")
        copied = shown.tui.folders.state / "copied.txt"
        await shown.until(copied.exists)
        words = shlex.split(copied.read_text())
        assert words[1:4] == ["--unix-socket", "/run/llmd/llmd.sock", "http://llmd/v1/chat/completions"]
        assert json.loads(words[-1])["messages"] == [{"role": "user", "content": "one"}]


async def test_the_oldest_turns_are_dropped_on_request(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        for text in ("one", "two"):
            await shown.ask(text)
        shown.daemon.answers["/v1/chat/completions/input_tokens"] = lambda body: {
            "input_tokens": 40 * len(body["messages"])
        }
        await shown.type("/drop")
        await shown.until(lambda: shown.screen.chat.session.first_sent)
        await shown.until(lambda: shown.view(0).has_class("dropped"))
        assert not shown.view(2).has_class("dropped")


async def test_a_file_is_sent_with_the_message(chat: OpenChatScreen, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("the notes")
    async with chat() as shown:
        await shown.type(f"/attach {tmp_path}/notes.md")
        await shown.until(lambda: shown.screen.composer.attachments)
        await shown.ask("what?")
        assert shown.bodies[0]["messages"][0]["content"] == "notes.md:\n```\nthe notes\n```\n\nwhat?"
        assert shown.line(0, "chips") == "+ notes.md, 9 B"
        assert shown.screen.composer.attachments == ()


async def test_a_chat_is_named_and_left(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.type("/rename My chat")
        await shown.until(lambda: shown.screen.chat.session.title == "My chat")
        await shown.type("/exit")
        await shown.until(lambda: not shown.tui.is_running)
