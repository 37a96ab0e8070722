"""Tensors are read in order, at most a limit ahead of their use, and never after it."""

from __future__ import annotations

import queue
import threading

import pytest

from llmd.models import read_ahead
from llmd.models.read_ahead import ReadAhead

LIMIT_S = 20.0
ORDER = [("a", 4), ("b", 4), ("a", 4), ("c", 4), ("d", 4)]


class Disk:
    """Records what is read; reads block while ``go`` is not set."""

    def __init__(self) -> None:
        self.read: queue.Queue[str] = queue.Queue()
        self.go = threading.Event()
        self.go.set()

    def fetch(self, name: str) -> None:
        self.read.put(name)
        assert self.go.wait(LIMIT_S)

    def next(self) -> str:
        return self.read.get(timeout=LIMIT_S)


def test_each_tensor_is_read_once_in_the_order_of_its_first_use() -> None:
    disk = Disk()
    with ReadAhead(disk.fetch, ORDER):
        assert [disk.next() for _ in range(4)] == ["a", "b", "c", "d"]
    assert disk.read.empty()


def test_it_waits_where_it_is_too_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_AHEAD", 8)
    disk = Disk()
    with ReadAhead(disk.fetch, ORDER) as ahead:
        assert [disk.next() for _ in range(2)] == ["a", "b"]
        with pytest.raises(queue.Empty):
            disk.read.get(timeout=0.05)
        ahead.use("a")
        assert disk.next() == "c"
        ahead.use("unknown")
        with pytest.raises(queue.Empty):
            disk.read.get(timeout=0.05)
        ahead.use("b")
        assert disk.next() == "d"


def test_what_was_used_meanwhile_is_left_out() -> None:
    disk = Disk()
    disk.go.clear()
    with ReadAhead(disk.fetch, ORDER) as ahead:
        assert disk.next() == "a"
        ahead.use("c")
        disk.go.set()
        assert disk.next() == "d"
    assert disk.read.empty()


def test_it_ends_with_its_block_and_a_disk_that_fails_is_not_its_matter() -> None:
    def fail(_name: str) -> None:
        raise OSError(5, "Input/output error")

    with ReadAhead(fail, ORDER):
        pass
    assert not [thread for thread in threading.enumerate() if thread.name == "read-ahead"]
