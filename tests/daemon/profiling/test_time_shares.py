from __future__ import annotations

import pytest

from llmd.profiling import time_shares
from llmd.profiling.time_shares import TimeShares
from tests.daemon.profiling.simulated import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time_shares, "time", clock)
    return clock


def test_parts_that_take_their_share_have_equal_ones(clock: Clock) -> None:
    shares = TimeShares(10.0, 5)
    for count in (2, 1, 2):
        share_s = shares.take(count)
        assert share_s == pytest.approx(2.0 * count)
        clock.pause(share_s)


def test_what_a_part_takes_too_much_or_leaves_is_divided_among_the_others(clock: Clock) -> None:
    shares = TimeShares(10.0, 4)
    shares.take()
    clock.pause(4.0)
    assert shares.take() == pytest.approx(2.0)
    clock.pause(0.5)
    assert shares.take() == pytest.approx(2.75)


def test_no_time_is_left_after_the_end(clock: Clock) -> None:
    shares = TimeShares(1.0, 2)
    clock.pause(5.0)
    assert shares.take() == 0.0
    assert TimeShares(0.0, 1).take(3) == 0.0
