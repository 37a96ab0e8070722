from __future__ import annotations

from datetime import date, datetime

from llmd_tui.screens.chat.session_groups import grouped
from llmd_tui.screens.chat.store.records import Session


def session(number: int, day: date, *, pinned: bool = False) -> Session:
    noon = datetime(day.year, day.month, day.day, 12).timestamp()  # noqa: DTZ001 - as at the screen
    return Session(number, updated=noon, pinned=pinned)


def test_chats_are_in_folders_by_day_and_pinned_ones_first() -> None:
    sessions = [
        session(1, date(2025, 1, 1), pinned=True),
        session(2, date(2026, 3, 12)),
        session(3, date(2026, 3, 12)),
        session(4, date(2026, 3, 11)),
        session(5, date(2026, 3, 9)),
        session(6, date(2026, 3, 5)),
    ]
    folders = [
        (name, [one.session_id for one in found]) for name, found in grouped(sessions, date(2026, 3, 12))
    ]
    assert folders == [
        ("Pinned", [1]),
        ("Today", [2, 3]),
        ("Yesterday", [4]),
        ("Monday", [5]),
        ("5 March 2026", [6]),
    ]
