"""Older databases are brought to the newest version, and newer ones are refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.chats import NAME, ChatStore
from llmd_tui.screens.chat.store.records import Content, Settings
from llmd_tui.screens.chat.store.schema import MIGRATIONS, migrate


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_each_missing_step_is_done_once() -> None:
    connection = sqlite3.connect(":memory:")
    steps = ["CREATE TABLE one (name TEXT)", "ALTER TABLE one ADD COLUMN kind TEXT DEFAULT 'old'"]
    migrate(connection, steps[:1])
    connection.execute("INSERT INTO one VALUES ('kept')")
    connection.commit()
    migrate(connection, steps)
    migrate(connection, steps)
    assert connection.execute("SELECT * FROM one").fetchall() == [("kept", "old")]
    assert version(connection) == 2


def test_a_step_that_fails_changes_nothing() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, ["CREATE TABLE one (name TEXT); NONSENSE"])
    connection.rollback()
    assert version(connection) == 0
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_newer_version_is_refused_with_what_to_do() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(LlmdError, match="update llmd"):
        migrate(connection)


def test_the_index_knows_what_was_written_without_it(tmp_path: Path) -> None:
    with_index = ChatStore.open(tmp_path, lambda: 1.0)
    session = with_index.create(Settings())
    with_index.add(session.session_id, None, "user", Content("zebra"))
    with_index.close()
    without = ChatStore.open(tmp_path, lambda: 1.0, full_text=False)
    without.add(session.session_id, None, "user", Content("giraffe"))
    without.close()
    again = ChatStore.open(tmp_path, lambda: 1.0)
    assert again._has_index
    assert all(again.sessions(search=word) for word in ("zebra", "giraffe"))
    assert sqlite3.connect(tmp_path / NAME).execute("SELECT * FROM flags").fetchall() == []
