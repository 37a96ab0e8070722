"""Chats are kept in a private database, found again by their words, and deleted for good."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.chats import NAME, ChatStore
from llmd_tui.screens.chat.store.records import Attachment, Call, Content, Figures, Settings

WHOLE = Content(
    text="the answer",
    reasoning="because",
    calls=(Call("weather", '{"city": "Oslo"}'),),
    attachments=(Attachment("a.txt", "text"),),
    figures=Figures(
        model="guide", prompt_tokens=9, cached_tokens=3, completion_tokens=5, ttft_ms=12.5, seed=1
    ),
    ending="stopped",
    reason="words",
)
SETTINGS = Settings(
    model="guide", system="be brief", temperature=0.5, thinking=False, schema={"type": "object"}
)


def clock() -> Callable[[], float]:
    times = itertools.count(1000)
    return lambda: float(next(times))


@pytest.fixture(params=[True, False], ids=["index", "like"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChatStore:
    return ChatStore.open(tmp_path / "data", clock(), full_text=request.param)


def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    store = ChatStore.open(tmp_path, clock())
    session = store.create(SETTINGS, "Weather")
    question = store.add(session.session_id, None, "user", Content("hello"))
    answer = store.add(session.session_id, question.message_id, "assistant", Content())
    store.update(answer.message_id, WHOLE)
    store.change(session.session_id, draft="half a", first_sent=question.message_id, pinned=True)
    store.close()
    again = ChatStore.open(tmp_path, clock())
    (found,) = again.sessions()
    assert (found.title, found.settings, found.draft, found.pinned) == ("Weather", SETTINGS, "half a", True)
    assert (found.leaf, found.first_sent) == (answer.message_id, question.message_id)
    first, second = again.messages(found.session_id)
    assert (first.role, first.parent, first.content.text) == ("user", None, "hello")
    assert (second.role, second.parent, second.content) == ("assistant", question.message_id, WHOLE)


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    store = ChatStore.open(tmp_path, clock())
    store.create(Settings())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(modes, 0o600)
    assert NAME in modes


def killed_while_writing(folder: Path) -> None:
    """Write a draft and a message, and end without a word."""
    store = ChatStore.open(folder, clock())
    session = store.create(Settings())
    store.add(session.session_id, None, "user", Content("sent"))
    store.change(session.session_id, draft="not yet sent")
    os._exit(1)


def test_what_was_written_survives_the_death_of_the_process(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=killed_while_writing, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 1
    (found,) = (store := ChatStore.open(tmp_path, clock())).sessions()
    assert found.draft == "not yet sent"
    assert [one.content.text for one in store.messages(found.session_id)] == ["sent"]


def test_pinned_chats_come_first_and_then_the_newest(store: ChatStore) -> None:
    old, middle, new = (store.create(Settings(), title) for title in ("old", "middle", "new"))
    store.change(old.session_id, pinned=True)
    store.add(middle.session_id, None, "user", Content("again"))
    store.change(new.session_id, title="renamed")
    assert [one.title for one in store.sessions()] == ["old", "middle", "renamed"]
    assert [one.title for one in store.sessions(limit=2)] == ["old", "middle"]


def test_the_archive_is_listed_apart(store: ChatStore) -> None:
    kept, put_away = store.create(Settings(), "kept"), store.create(Settings(), "put away")
    store.change(put_away.session_id, archived=True)
    assert [one.session_id for one in store.sessions()] == [kept.session_id]
    assert [one.session_id for one in store.sessions(archived=True)] == [put_away.session_id]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("paged attention", ["about paging"]),
        ("ATTEN", ["about paging"]),
        ("about", ["about paging", "about 100%"]),
        ("100%", ["about 100%"]),
        ('"quoted', ["about 100%"]),
        ("attention nonsense", []),
    ],
)
def test_all_words_are_searched_for_in_texts_and_titles(
    store: ChatStore, words: str, found: list[str]
) -> None:
    percent = store.create(Settings(), "about 100%")
    store.add(percent.session_id, None, "user", Content('he said "quoted" words'))
    paging = store.create(Settings(), "about paging")
    store.add(paging.session_id, None, "user", Content("What is paged attention?"))
    store.change(paging.session_id, archived=True)
    assert [one.title for one in store.sessions(search=words)] == found


def test_signs_of_patterns_mean_themselves_without_an_index(tmp_path: Path) -> None:
    store = ChatStore.open(tmp_path, clock(), full_text=False)
    for title in ("100%", "a_b", "plain"):
        store.create(Settings(), title)
    assert [one.title for sign in "%_" for one in store.sessions(search=sign)] == ["100%", "a_b"]


def test_changed_and_deleted_texts_are_not_found(store: ChatStore) -> None:
    session = store.create(Settings())
    first = store.add(session.session_id, None, "user", Content("zebra"))
    second = store.add(session.session_id, first.message_id, "assistant", Content("giraffe"))
    store.update(second.message_id, Content("camel"))
    assert [bool(store.sessions(search=word)) for word in ("zebra", "giraffe", "camel")] == [
        True,
        False,
        True,
    ]
    store.remove(first.message_id)
    assert store.messages(session.session_id) == []
    assert not store.sessions(search="camel")


def test_a_deleted_chat_is_gone_with_its_messages(store: ChatStore) -> None:
    session = store.create(Settings(), "secret")
    store.add(session.session_id, None, "user", Content("secret"))
    store.delete(session.session_id)
    assert store.sessions() == []
    assert store.questions(10) == []
    with pytest.raises(LlmdError, match="was deleted"):
        store.session(session.session_id)


def test_the_last_questions_are_those_of_all_chats(store: ChatStore) -> None:
    for text in ("one", "two", "three"):
        session = store.create(Settings())
        question = store.add(session.session_id, None, "user", Content(text))
        store.add(session.session_id, question.message_id, "assistant", Content("answer"))
    assert store.questions(2) == ["two", "three"]


def test_ten_thousand_chats_are_listed_in_pages(tmp_path: Path) -> None:
    store = ChatStore.open(tmp_path, clock())
    with store._connection as connection:
        connection.executemany(
            "INSERT INTO sessions (title, created, updated, settings) VALUES (?, ?, ?, '{}')",
            [(f"chat {number}", number, number) for number in range(10_000)],
        )
    assert len(store.sessions()) == 200
    assert store.sessions()[0].title == "chat 9999"


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database " * 100)
    with pytest.raises(LlmdError, match=r"chats\.db cannot be read or written"):
        ChatStore.open(tmp_path, clock())


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LlmdError, match="cannot be read or written"):
        ChatStore.open(tmp_path / "file", clock())


def test_a_store_in_memory_works_alike() -> None:
    store = ChatStore.in_memory(clock())
    store.create(Settings(), "short")
    assert [one.title for one in store.sessions()] == ["short"]


def test_two_interfaces_may_write_to_the_same_chats(tmp_path: Path) -> None:
    one, other = ChatStore.open(tmp_path, clock()), ChatStore.open(tmp_path, clock())
    session = one.create(Settings(), "shared")
    other.add(session.session_id, None, "user", Content("from the other"))
    assert [message.content.text for message in one.messages(session.session_id)] == ["from the other"]
    assert sqlite3.connect(tmp_path / NAME).execute("PRAGMA journal_mode").fetchone() == ("wal",)
