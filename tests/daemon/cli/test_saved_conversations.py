"""Conversations are saved by name in private files; a damaged file is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError, NotFoundError, RequestError
from llmd.cli.conversation import Conversation, Turn
from llmd.cli.saved_conversations import VERSION, SavedConversations

TALK = Conversation(
    "guide", "be brief", {"seed": 1, "temperature": 0.5}, thinking=True, turns=[Turn("ä?", "ö!")]
)


@pytest.fixture
def saved(tmp_path: Path) -> SavedConversations:
    return SavedConversations(tmp_path / "conversations")


def test_a_conversation_comes_back_as_it_was(saved: SavedConversations) -> None:
    assert saved.names() == []
    assert not saved.save("talk", TALK)
    assert saved.load("talk") == TALK
    assert saved.load("talk:latest") == TALK
    assert saved.save("talk", Conversation("guide"))
    assert saved.load("talk") == Conversation("guide")
    assert saved.names() == ["talk"]


def test_the_file_is_its_owners_alone_and_no_draft_stays(saved: SavedConversations, tmp_path: Path) -> None:
    saved.save("org/talk:1", TALK)
    (file,) = (tmp_path / "conversations").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert saved.names() == ["org/talk:1"]


@pytest.mark.parametrize("name", ["../x", "-rf", "", "a\nb", "x" * 201])
def test_names_follow_the_rule_of_model_names(saved: SavedConversations, name: str, tmp_path: Path) -> None:
    for use in (lambda: saved.save(name, TALK), lambda: saved.load(name)):
        with pytest.raises(RequestError, match="conversation name"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_there_is_answered_with_those_that_are(saved: SavedConversations) -> None:
    saved.save("mine", TALK)
    with pytest.raises(NotFoundError, match="no saved conversation yours; saved conversations: mine"):
        saved.load("yours")


def test_another_version_is_refused_with_both_numbers(saved: SavedConversations, tmp_path: Path) -> None:
    file = tmp_path / "conversations" / "talk.json"
    saved.save("talk", TALK)
    content = json.loads(file.read_text())
    assert content["version"] == VERSION
    file.write_text(json.dumps({"version": 7, "chats": []}))
    with pytest.raises(
        LlmdError, match=f"{file} has format version 7, but this llmd reads version {VERSION}"
    ):
        saved.load("talk")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"version": "1"}',
        b'{"version": 1}',
        b'{"version": 1, "conversation": {"model": "guide", "turns": [{"question": 1, "answer": "a"}]}}',
        b'{"version": 1, "conversation": {"model": "guide", "mood": "good"}}',
    ],
)
def test_what_is_no_conversation_is_refused_by_its_path(
    saved: SavedConversations, tmp_path: Path, content: bytes
) -> None:
    saved.save("talk", TALK)
    file = tmp_path / "conversations" / "talk.json"
    file.write_bytes(content)
    with pytest.raises(LlmdError, match=f"{file} is not a saved conversation"):
        saved.load("talk")


def test_a_file_that_cannot_be_read_is_named(saved: SavedConversations, tmp_path: Path) -> None:
    (tmp_path / "conversations" / "talk.json").mkdir(parents=True)
    with pytest.raises(LlmdError, match="cannot be read: Is a directory"):
        saved.load("talk")
