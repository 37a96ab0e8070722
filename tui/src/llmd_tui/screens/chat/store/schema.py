"""The tables of the database, and how older ones become the present ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from llmd.api.errors import LlmdError

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE sessions (
      id INTEGER PRIMARY KEY,
      title TEXT NOT NULL DEFAULT '',
      created REAL NOT NULL,
      updated REAL NOT NULL,
      pinned INTEGER NOT NULL DEFAULT 0,
      archived INTEGER NOT NULL DEFAULT 0,
      settings TEXT NOT NULL,
      leaf INTEGER,
      first_sent INTEGER,
      draft TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX sessions_by_time ON sessions (archived, pinned, updated);
    CREATE TABLE messages (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
      parent INTEGER REFERENCES messages (id) ON DELETE CASCADE,
      role TEXT NOT NULL,
      text TEXT NOT NULL,
      content TEXT NOT NULL
    );
    CREATE INDEX messages_of_session ON messages (session);
    CREATE INDEX messages_of_parent ON messages (parent);
    CREATE TABLE flags (name TEXT PRIMARY KEY);
    """,
)
"""The script at place N makes version N + 1 from version N. Scripts are added, never changed."""

INDEX = """
CREATE VIRTUAL TABLE IF NOT EXISTS messages_index USING fts5(
  text, content='messages', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE TEMP TRIGGER index_insert AFTER INSERT ON main.messages BEGIN
  INSERT INTO messages_index (rowid, text) VALUES (new.id, new.text);
END;
CREATE TEMP TRIGGER index_delete AFTER DELETE ON main.messages BEGIN
  INSERT INTO messages_index (messages_index, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TEMP TRIGGER index_update AFTER UPDATE OF text ON main.messages BEGIN
  INSERT INTO messages_index (messages_index, rowid, text) VALUES ('delete', old.id, old.text);
  INSERT INTO messages_index (rowid, text) VALUES (new.id, new.text);
END;
"""
STALE = "index_is_stale"
"""Flag: messages were changed by an SQLite without FTS5, so that the index must be built again."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring the tables to the newest version; each step is done whole or not at all.

    Raises:
        LlmdError: a newer llmd made them.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise LlmdError(
            f"the chats have format version {version}, but this llmd reads versions up to {len(migrations)}",
            hint="update llmd",
        )
    for number, script in enumerate(migrations[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")


def make_index(connection: sqlite3.Connection, *, wanted: bool = True) -> bool:
    """Prepare the index for full-text search; return False if this SQLite has none.

    The triggers belong to the connection, so that an SQLite without FTS5 can still write to the same file.
    """
    if wanted:
        with suppress(sqlite3.OperationalError):
            connection.executescript(INDEX)
            if connection.execute("DELETE FROM flags WHERE name = ?", (STALE,)).rowcount:
                connection.execute("INSERT INTO messages_index (messages_index) VALUES ('rebuild')")
            connection.commit()
            return True
    connection.execute("INSERT OR IGNORE INTO flags (name) VALUES (?)", (STALE,))
    connection.commit()
    return False
