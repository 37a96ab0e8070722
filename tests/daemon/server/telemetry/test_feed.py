from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from llmd.server.errors import BusyError
from llmd.server.telemetry.feed import MAX_WATCHERS, Event, Feed, Watcher


def numbers(events: list[Event] | None) -> list[int]:
    assert events is not None
    return [event.number for event in events]


async def test_watchers_get_every_event_in_order_from_when_they_came() -> None:
    feed = Feed()
    feed.emit("request", {"before": True})
    with feed.watch() as first, feed.watch() as second:
        waiting = asyncio.Task(first.next(), name="watcher")
        await asyncio.sleep(0)
        feed.emit("model", {"name": "tiny"})
        feed.emit("request", {})
        assert [(event.type, event.number) for event in await waiting or ()] == [("model", 2), ("request", 3)]
        assert numbers(await second.next()) == [2, 3]
        feed.emit("request", {})
        assert numbers(await first.next()) == [4]
    assert feed.watchers == 0


async def test_a_watcher_goes_on_where_it_was_cut_off() -> None:
    feed = Feed()
    for _ in range(5):
        feed.emit("request", {})
    with feed.watch(after=3) as watcher:
        assert numbers(await watcher.next()) == [4, 5]


async def test_a_number_of_another_daemon_is_no_place() -> None:
    feed = Feed()
    feed.emit("request", {})
    with feed.watch(after=900) as watcher:
        feed.emit("request", {})
        assert numbers(await watcher.next()) == [2]


@pytest.mark.parametrize("after", [None, 1])
async def test_a_slow_watcher_is_told_that_it_missed_some_and_goes_on(after: int | None) -> None:
    feed = Feed(kept=3)
    feed.emit("request", {})
    with feed.watch(after) as watcher:
        for _ in range(4):
            feed.emit("request", {})
        assert await watcher.next() is None
        feed.emit("request", {})
        assert numbers(await watcher.next()) == [6]


async def test_a_watcher_that_is_just_in_time_misses_none() -> None:
    feed = Feed(kept=3)
    with feed.watch() as watcher:
        for _ in range(3):
            feed.emit("request", {})
        assert numbers(await watcher.next()) == [1, 2, 3]


def test_watchers_are_bounded() -> None:
    feed = Feed()
    with ExitStack() as stack:
        watchers: list[Watcher] = [stack.enter_context(feed.watch()) for _ in range(MAX_WATCHERS)]
        with pytest.raises(BusyError) as caught, feed.watch():
            pass
        assert caught.value.code == "too_many_watchers"
    assert len(watchers) == MAX_WATCHERS
    with feed.watch():
        assert feed.watchers == 1


def test_old_events_are_dropped_when_there_are_too_many_or_too_many_bytes() -> None:
    feed = Feed(kept=3)
    for _ in range(5):
        feed.emit("log", {})
    assert [event.number for event in feed.kept] == [3, 4, 5]
    size = len(feed.kept[0].data)
    small = Feed(kept=3, max_bytes=2 * size)
    for _ in range(5):
        small.emit("log", {})
    assert [event.number for event in small.kept] == [4, 5]
    assert numbers(small.since(4)) == [5]
    assert small.since(2) is None
    small.emit("log", {"text": "x" * 3 * size})
    assert (small.kept, small.last) == ((), 6)
