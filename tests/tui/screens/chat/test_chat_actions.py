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
from llmd_tui.daemon.access import RefusedError
from llmd_tui.screens.chat.open_chat import OpenChat
from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.screen import ChatScreen
from llmd_tui.screens.chat.store.records import Settings
from llmd_tui.screens.chat.widgets.dialogs import AskText, Choose
from llmd_tui.screens.chat.widgets.find_bar import FindBar
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.settings_dialog import SettingsDialog
from llmd_tui.widgets.help_dialog import HelpDialog
from tests.tui.conftest import MakeTui
from tests.tui.screens.chat.conftest import Chat, OpenChatScreen, chunk, usage, whole
from tests.tui.scripted_daemon import ScriptedDaemon


def settings(chat: Chat) -> Settings:
    return chat.screen.chat.settings


def is_open(chat: Chat, dialog: type[Screen[Any]]) -> bool:
    return isinstance(chat.tui.screen, dialog)


def note(chat: Chat) -> str:
    """Return what is said above the prompt."""
    line = chat.screen.composer.query_one("#note", Line)
    return str(line.content) if line.display else ""


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


def calling(*names: str) -> tuple[dict[str, Any] | None, ...]:
    """An answer that calls tools."""
    calls = [
        {"index": place, "id": f"call_{name}", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(names)
    ]
    return (chunk(tool_calls=calls), chunk("", "tool_calls"), usage(), None)


async def test_tools_are_offered_and_their_results_are_typed(chat: OpenChatScreen, tmp_path: Path) -> None:
    declared = [{"type": "function", "function": {"name": name}} for name in ("weather", "time")]
    (tmp_path / "tools.json").write_text(json.dumps(declared))
    async with chat() as shown:
        await shown.type(f"/tools {tmp_path}/tools.json")
        await shown.until(partial(has_said, shown, "The model may call weather, time."))
        shown.daemon.put(ROUTE, *calling("weather", "time"), *whole("Rain at noon."))
        await shown.type("how is it?")
        await shown.until(lambda: "The model called weather and 1 more: /result sends" in note(shown))
        assert shown.bodies[0]["tools"] == declared
        assert shown.line(-1, "calls") == "⚙ weather\n{}\n⚙ time\n{}"
        await shown.type("/result rain")
        await shown.until(lambda: is_open(shown, AskText))  # for the other call
        await shown.pilot.press(*"noon", "ctrl+s")
        await shown.until(lambda: shown.texts == ["how is it?", "", "rain", "noon", "Rain at noon."])
        await shown.settle()
        assert note(shown) == ""
        assert [shown.line(place, "head") for place in (2, 3)] == ["Result of weather", "Result of time"]
        assert [(one["role"], one.get("tool_call_id")) for one in shown.bodies[1]["messages"]] == [
            ("user", None),
            ("assistant", None),
            ("tool", "call_weather"),
            ("tool", "call_time"),
        ]
        kept = await OpenChat.load(shown.screen.store, shown.screen.chat.session.session_id)
        assert kept.settings.tools == tuple(declared)
        assert [one.role for one in kept.path] == ["user", "assistant", "tool", "tool", "assistant"]


async def test_a_result_without_a_call_is_not_sent(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.type("/result rain")
        await shown.until(partial(has_said, shown, "No call of a tool waits for a result."))
        assert shown.texts == ["one", "answer to one"]


async def test_an_edited_result_is_a_branch_that_is_answered_again(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        shown.daemon.put(ROUTE, *calling("weather"), *whole("Rain."), *whole("Sun."))
        await shown.type("how is it?")
        await shown.until(lambda: note(shown))
        await shown.type("/result rain")
        await shown.until(lambda: shown.texts[-1] == "Rain.")
        await shown.settle()
        await shown.pilot.press("tab", "up", "e")
        await shown.until(lambda: is_open(shown, AskText))
        await shown.pilot.press("ctrl+u", *"sun", "ctrl+s")
        await shown.until(lambda: shown.texts == ["how is it?", "", "sun"])
        await shown.type("", "ctrl+r")
        await shown.until(lambda: shown.texts == ["how is it?", "", "sun", "Sun."])
        await shown.settle()
        assert shown.bodies[-1]["messages"][-1] == {
            "role": "tool",
            "content": "sun",
            "tool_call_id": "call_weather",
        }


async def test_a_chat_is_named_and_left(chat: OpenChatScreen) -> None:
    async with chat() as shown:
        await shown.ask("one")
        await shown.type("/rename My chat")
        await shown.until(lambda: shown.screen.chat.session.title == "My chat")
        await shown.type("/exit")
        await shown.until(lambda: not shown.tui.is_running)


async def test_a_message_without_a_key_says_that_one_is_needed(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    daemon.gets["/v1/models"] = RefusedError("an API key is required")
    daemon.drop(RefusedError("an API key is required"))
    async with make_tui(ChatScreen).run_test(size=(120, 40)) as pilot:
        shown = Chat(pilot, daemon)
        await shown.until(lambda: shown.screen._is_ready)
        await shown.type("Hello")
        await shown.until(lambda: has_said(shown, "an API key is required"))
        assert has_said(shown, "Set LLMD_API_KEY to a key of this daemon")
        assert shown.screen.prompt.text == "Hello"


async def test_a_daemon_without_models_says_so_and_one_that_has_them_now_offers_them(
    daemon: ScriptedDaemon, make_tui: MakeTui
) -> None:
    daemon.gets["/v1/models"] = {"data": []}
    async with make_tui(ChatScreen).run_test(size=(120, 40)) as pilot:
        shown = Chat(pilot, daemon)
        await shown.until(lambda: shown.screen._is_ready)
        await shown.type("/model")
        await shown.until(lambda: has_said(shown, "The daemon has no model to chat with"))
        daemon.gets["/v1/models"] = {"data": [{"id": "guide", "max_model_len": 100, "status": "loaded"}]}
        await shown.type("/model")
        await shown.until(lambda: is_open(shown, Choose))
