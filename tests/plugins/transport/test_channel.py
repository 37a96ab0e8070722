"""A bounded queue that can be closed."""

from __future__ import annotations

import pytest

from llmd.api import LinkClosedError, LinkTimeoutError
from llmd_transport.channel import Channel


def test_items_come_out_in_order() -> None:
    channel = Channel[int]("made", 3)
    for item in (1, 2, 3):
        channel.put(item, 0)
    assert [channel.get(0) for _ in range(3)] == [1, 2, 3]


def test_a_full_channel_takes_nothing_more() -> None:
    channel = Channel[int]("made", 1)
    channel.put(1, 0)
    with pytest.raises(LinkTimeoutError, match=r"made: the peer read none of 1 queued frames within 0 s"):
        channel.put(2, 0)
    assert channel.get(0) == 1
    with pytest.raises(LinkTimeoutError, match="nothing arrived within 0 s"):
        channel.get(0)


def test_waiting_for_room_puts_nothing() -> None:
    channel = Channel[int]("made", 1)
    channel.wait_for_room(0)
    channel.put(1, 0)
    with pytest.raises(LinkTimeoutError):
        channel.wait_for_room(0)
    channel.close()
    with pytest.raises(LinkClosedError):
        channel.wait_for_room(0)
    assert channel.drain() == [1]


def test_a_closed_channel_gives_what_it_holds_and_no_more() -> None:
    channel = Channel[int]("made", 2)
    channel.put(1, 0)
    channel.close()
    with pytest.raises(LinkClosedError, match="made is closed"):
        channel.put(2, 0)
    assert channel.get(0) == 1
    with pytest.raises(LinkClosedError):
        channel.get(0)


def test_draining_closes_and_returns_what_was_left() -> None:
    channel = Channel[int]("made", 2)
    channel.put(1, 0)
    channel.put(2, 0)
    assert channel.drain() == [1, 2]
    with pytest.raises(LinkClosedError):
        channel.get(0)


class FedWhileClosing(Channel[str]):
    """A channel into which another thread puts an item at the last moment."""

    def close(self) -> None:
        self.put("late", 0)
        super().close()


def test_draining_loses_no_item_that_comes_at_the_last_moment() -> None:
    assert FedWhileClosing("made", 2).drain() == ["late"]


def test_a_full_channel_that_is_closed_says_closed() -> None:
    channel = Channel[int]("made", 1)
    channel.put(1, 0)
    channel.close()
    with pytest.raises(LinkClosedError):
        channel.put(2, 0)
