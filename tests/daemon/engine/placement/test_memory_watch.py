from __future__ import annotations

import pytest

from llmd.engine.placement.memory_watch import EVERY_S, MemoryState, MemoryWatch


class Memory:
    """A memory of 100 bytes, and a clock."""

    def __init__(self, free_bytes: int) -> None:
        self.now_s = 0.0
        self.looks = 0
        self.free_bytes = free_bytes
        self.spilled_bytes = 0
        self.watch = MemoryWatch(self.look, lambda: self.now_s)

    def look(self) -> dict[str, MemoryState]:
        self.looks += 1
        return {"card": MemoryState(self.free_bytes, 100, self.spilled_bytes)}

    def later(self, free_bytes: int) -> str | None:
        """Return what is full once it is time to look again."""
        self.now_s += EVERY_S
        self.free_bytes = free_bytes
        return self.watch.full_memory()


def test_a_memory_that_others_fill_is_full_from_ninety_five_percent() -> None:
    memory = Memory(40)
    assert memory.later(6) is None
    assert memory.later(5) == "card"


def test_a_memory_that_the_model_fills_by_itself_is_not_full() -> None:
    memory = Memory(3)
    assert memory.later(2) is None
    assert Memory(7).later(2) == "card"


def test_after_a_new_placement_others_must_take_more_again() -> None:
    memory = Memory(40)
    assert memory.later(5) == "card"
    memory.watch.begin()
    assert memory.later(5) is None
    assert memory.later(0) == "card"


def test_there_are_seconds_between_two_looks() -> None:
    memory = Memory(40)
    memory.free_bytes = 0
    assert memory.watch.full_memory() is None
    memory.now_s = EVERY_S * 0.9
    assert memory.watch.full_memory() is None
    assert memory.looks == 1
    assert memory.later(0) == "card"


def test_a_memory_that_is_nearly_full_is_logged_once_until_it_has_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory(40)
    for free_bytes in (13, 12, 11, 38, 12, 12):
        memory.later(free_bytes)
    assert [record.message for record in caplog.records] == ["memory_nearly_full"] * 2


def test_a_memory_that_begins_to_spill_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory(40)
    assert memory.watch.spilled_bytes == {}
    for memory.spilled_bytes in (7, 8, 0, 9):
        memory.later(40)
    assert memory.watch.spilled_bytes == {"card": 9}
    logged = [(record.message, record.spilled_bytes) for record in caplog.records]  # type: ignore[attr-defined]
    assert logged == [("memory_spilled", 7), ("memory_spilled", 9)]
