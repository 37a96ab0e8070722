"""All chats of a person in one database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.records import Content, Message, Role, Session, Settings
from llmd_tui.screens.chat.store.schema import make_index, migrate

NAME = "chats.db"
BUSY_S = 5.0
"""How long a write waits for another program that writes."""
PAGE = 200
"""Sessions that are listed at once."""
SESSION_COLUMNS = "id, title, created, updated, pinned, archived, settings, leaf, first_sent, draft"


class ChatStore:
    """Reads and writes chats. Every call may raise `LlmdError`; a change is kept when its call returns."""

    def __init__(
        self, connection: sqlite3.Connection, clock: Callable[[], float], *, full_text: bool = True
    ) -> None:
        """``clock`` returns seconds since 1970; ``full_text`` False searches without an index."""
        self._connection = connection
        self._clock = clock
        with _told():
            connection.execute("PRAGMA foreign_keys = ON")
            migrate(connection)
            self._has_index = make_index(connection, wanted=full_text)

    @classmethod
    def open(cls, folder: Path, clock: Callable[[], float], *, full_text: bool = True) -> Self:
        """Open the database in a folder, which only its owner can read; make it if there is none.

        Raises:
            LlmdError: it cannot be opened, is damaged, or was made by a newer llmd.
        """
        path = folder / NAME
        with _told(path):
            folder.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                return cls(connection, clock, full_text=full_text)
            except BaseException:
                connection.close()
                raise

    @classmethod
    def in_memory(cls, clock: Callable[[], float]) -> Self:
        """Return a store that is gone at the end, for when no file can be written."""
        return cls(sqlite3.connect(":memory:", check_same_thread=False), clock)

    def close(self) -> None:
        self._connection.close()

    def sessions(self, *, search: str = "", archived: bool = False, limit: int = PAGE) -> list[Session]:
        """Return sessions, pinned ones first, then the newest; with ``search`` those with all its words."""
        condition, values = "archived = ?", [int(archived)]
        if words := search.split():
            found, more = self._matching(words)
            condition, values = f"({found})", more
        return [
            _session(row)
            for row in self._read(
                f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {condition} "  # noqa: S608 - no values in it
                "ORDER BY pinned DESC, updated DESC, id DESC LIMIT ?",
                (*values, limit),
            )
        ]

    def session(self, session_id: int) -> Session:
        """Return one session.

        Raises:
            LlmdError: it is gone.
        """
        rows = self._read(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE id = ?", (session_id,))  # noqa: S608
        if not rows:
            raise LlmdError("this chat was deleted", hint="begin another one")
        return _session(rows[0])

    def create(self, settings: Settings, title: str = "") -> Session:
        """Begin a session."""
        now = self._clock()
        values = (title, now, now, _json(settings))
        with self._writing() as write:
            cursor = write(
                "INSERT INTO sessions (title, created, updated, settings) VALUES (?, ?, ?, ?)", values
            )
        return Session(cursor.lastrowid or 0, title, now, now, settings=settings)

    def change(self, session_id: int, /, **changes: Any) -> None:
        """Change fields of a session; they are named as in `Session`. A new draft moves it up in the list."""
        if changes.get("draft"):
            changes["updated"] = self._clock()
        encoded = {name: _column(value) for name, value in changes.items()}
        with self._writing() as write:
            for name, value in encoded.items():
                assert name in Session.__struct_fields__
                write(f"UPDATE sessions SET {name} = ? WHERE id = ?", (value, session_id))  # noqa: S608

    def delete(self, session_id: int) -> None:
        """Delete a session with its messages."""
        with self._writing() as write:
            write("DELETE FROM sessions WHERE id = ?", (session_id,))

    def messages(self, session_id: int) -> list[Message]:
        """Return all messages of a session, oldest first."""
        rows = self._read(
            "SELECT id, parent, role, content FROM messages WHERE session = ? ORDER BY id", (session_id,)
        )
        return [
            Message(row[0], row[1], row[2], msgspec.json.decode(row[3], type=prepared(Content)))
            for row in rows
        ]

    def add(self, session_id: int, parent: int | None, role: Role, content: Content) -> Message:
        """Add a message; it becomes the last one of the branch that is shown."""
        values = (session_id, parent, role, content.text, _json(content))
        with self._writing() as write:
            added = write(
                "INSERT INTO messages (session, parent, role, text, content) VALUES (?, ?, ?, ?, ?)", values
            ).lastrowid
            write(
                "UPDATE sessions SET leaf = ?, updated = ? WHERE id = ?", (added, self._clock(), session_id)
            )
        return Message(added or 0, parent, role, content)

    def update(self, message_id: int, content: Content) -> None:
        """Replace what a message says."""
        with self._writing() as write:
            write(
                "UPDATE messages SET text = ?, content = ? WHERE id = ?",
                (content.text, _json(content), message_id),
            )

    def remove(self, message_id: int) -> None:
        """Delete a message and all that follows it."""
        with self._writing() as write:
            write("DELETE FROM messages WHERE id = ?", (message_id,))

    def questions(self, limit: int) -> list[str]:
        """Return the last questions of all sessions, oldest first."""
        rows = self._read(
            "SELECT text FROM messages WHERE role = 'user' AND text != '' ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [row[0] for row in reversed(rows)]

    def _matching(self, words: Sequence[str]) -> tuple[str, list[Any]]:
        """Return the condition for sessions with all words in a message or in the title, with its values."""
        patterns = [f"%{_escaped(word)}%" for word in words]
        title = " AND ".join(r"title LIKE ? ESCAPE '\'" for _ in words)
        if self._has_index:
            asked = " ".join('"' + word.replace('"', '""') + '"*' for word in words)
            text = "id IN (SELECT session FROM messages_index JOIN messages ON messages.id = messages_index.rowid "
            return f"({title}) OR {text} WHERE messages_index MATCH ?)", [*patterns, asked]
        text = " AND ".join(r"text LIKE ? ESCAPE '\'" for _ in words)
        return (
            f"({title}) OR id IN (SELECT session FROM messages WHERE {text})",  # noqa: S608
            [*patterns, *patterns],
        )

    def _read(self, query: str, values: Sequence[Any]) -> list[Any]:
        with _told():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        with _told(), self._connection:
            yield self._connection.execute


@contextmanager
def _told(path: Path | None = None) -> Iterator[None]:
    """Raise errors of the disk and of SQLite as ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        where = f" in {path}" if path else ""
        raise LlmdError(
            f"the chats{where} cannot be read or written: {error}",
            hint="is the disk full, or the file damaged?",
        ) from error


def _session(row: Sequence[Any]) -> Session:
    fields: Mapping[str, Any] = dict(zip(Session.__struct_fields__, row, strict=True))
    settings = msgspec.json.decode(fields["settings"], type=prepared(Settings))
    return Session(
        **{
            **fields,
            "settings": settings,
            "pinned": bool(fields["pinned"]),
            "archived": bool(fields["archived"]),
        }
    )


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def _column(value: Any) -> Any:
    return _json(value) if isinstance(value, msgspec.Struct) else value


def _escaped(word: str) -> str:
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
