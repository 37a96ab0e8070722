"""The list of chats in folders by day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import groupby

from llmd_tui.screens.chat.store.records import Session


def grouped(sessions: Sequence[Session], today: date) -> Iterator[tuple[str, list[Session]]]:
    """Yield the sessions by folder, in their order: pinned ones come first."""
    for name, members in groupby(sessions, lambda one: folder(one, today)):
        yield name, list(members)


def folder(session: Session, today: date) -> str:
    """Return the folder of a session; its day is that of its last message, in local time."""
    if session.pinned:
        return "Pinned"
    day = datetime.fromtimestamp(session.updated).date()  # noqa: DTZ006 - the day of the person at the screen
    age = (today - day).days
    if age <= 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    return f"{day:%A}" if age < 7 else f"{day.day} {day:%B %Y}"
