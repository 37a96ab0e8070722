"""Conversations go to `llmd chat` and come from it; its own reader and writer are the other side here."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd.cli.conversation import Conversation, Turn
from llmd.cli.saved_conversations import SavedConversations
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Message, Settings
from llmd_tui.screens.chat.store.saved_files import SavedFiles

PATH = (
    Message(1, None, "user", Content("one", attachments=(Attachment("a.txt", "text"),))),
    Message(2, 1, "assistant", Content("first")),
    Message(3, 2, "user", Content("two")),
    Message(4, 3, "assistant", Content("", ending="failed")),
)


def test_what_llmd_chat_saved_is_read(tmp_path: Path) -> None:
    theirs = Conversation("guide", "be brief", {"temperature": 0.5, "top_k": 3}, False, [Turn("hi", "hello")])
    SavedConversations(tmp_path).save("trip/oslo", theirs)
    files = SavedFiles(tmp_path)
    assert files.names() == ["trip/oslo"]
    saved = files.read("trip/oslo")
    expected = Settings(model="guide", system="be brief", temperature=0.5, top_k=3, thinking=False)
    assert saved.chat_settings() == expected
    assert [(turn.question, turn.answer) for turn in saved.turns] == [("hi", "hello")]


def test_llmd_chat_reads_what_is_saved_here(tmp_path: Path) -> None:
    settings = Settings(model="guide", system="be brief", seed=7, thinking=True)
    SavedFiles(tmp_path).write("trip", settings, PATH)
    theirs = SavedConversations(tmp_path).load("trip")
    assert (theirs.model, theirs.system, theirs.settings, theirs.thinking) == (
        "guide",
        "be brief",
        {"seed": 7},
        True,
    )
    assert theirs.turns == [Turn("a.txt:\n```\ntext\n```\n\none", "first")]
    assert (tmp_path / "trip.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden", "x/y/z", "é"])
def test_names_that_llmd_chat_refuses_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LlmdError, match="cannot be the name"):
        SavedFiles(tmp_path).write(name, Settings(), ())
    with pytest.raises(LlmdError):
        SavedConversations(tmp_path).save(name, Conversation("guide"))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    files = SavedFiles(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "newer.json").write_text('{"version": 2, "conversation": {"model": "guide"}}')
    with pytest.raises(LlmdError, match="saved conversations: broken, newer"):
        files.read("missing")
    with pytest.raises(LlmdError, match=r"broken\.json cannot be read"):
        files.read("broken")
    with pytest.raises(LlmdError, match="format version 2"):
        files.read("newer")


def test_there_are_no_names_without_a_folder(tmp_path: Path) -> None:
    assert SavedFiles(tmp_path / "none").names() == []


def test_a_turn_with_calls_of_tools_has_the_answer_at_their_end(tmp_path: Path) -> None:
    call = Call("weather", "{}", "call_1")
    path = (
        Message(1, None, "user", Content("how is it?")),
        Message(2, 1, "assistant", Content("let me see", calls=(call,))),
        Message(3, 2, "tool", Content("rain", calls=(call,))),
        Message(4, 3, "assistant", Content("It rains.")),
    )
    SavedFiles(tmp_path).write("trip", Settings(model="guide"), path)
    assert SavedConversations(tmp_path).load("trip").turns == [Turn("how is it?", "It rains.")]
