from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.placement.overlap import BusyTimes, StageTimes, overlapped_seconds

stages = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 10.0)), min_size=1, max_size=5)
steps = st.lists(stages, min_size=1, max_size=5)


def test_steps_on_one_device_follow_each_other() -> None:
    assert overlapped_seconds([[("a", 2.0)]] * 3, depth=2) == 6.0
    assert overlapped_seconds([[("a", 2.0), ("a", 1.0)]] * 3, depth=2) == 9.0


def test_two_devices_work_on_two_steps() -> None:
    step = [("a", 2.0), ("b", 3.0)]
    assert overlapped_seconds([step] * 4, depth=2) == 2.0 + 4 * 3.0
    assert overlapped_seconds([step] * 4, depth=1) == 4 * 5.0


def test_a_step_begins_once_there_is_room_for_it() -> None:
    """The third step is submitted at 11, when the first one ends, and not when ``a`` is free."""
    step = [("a", 1.0), ("b", 10.0)]
    assert overlapped_seconds([step] * 3, depth=2) == 31.0
    assert overlapped_seconds([*[step] * 2, [("a", 50.0)]], depth=2) == 11.0 + 50.0


def test_a_later_step_fills_gaps_only() -> None:
    """The first step is back on ``a`` from 4 to 5. The second one needs 2 there, of the 3 before; or 4."""
    first = [("a", 1.0), ("b", 3.0), ("a", 1.0)]
    assert overlapped_seconds([first, [("a", 2.0)]], depth=2) == 5.0
    assert overlapped_seconds([first, [("a", 4.0)]], depth=2) == 9.0


def test_no_steps_take_no_time() -> None:
    assert overlapped_seconds([], depth=2) == 0.0


@given(steps, st.integers(1, 4))
def test_it_takes_no_longer_than_in_turn_and_no_less_than_the_longest(
    steps: list[StageTimes], depth: int
) -> None:
    found = overlapped_seconds(steps, depth)
    of_devices = [sum(s for stages in steps for one, s in stages if one == device) for device in "abc"]
    of_steps = [sum(seconds for _, seconds in stages) for stages in steps]
    assert found <= sum(of_steps) + 1e-6
    assert found >= max(*of_devices, *of_steps) - 1e-6
    assert overlapped_seconds(steps, 1) == pytest.approx(sum(of_steps))


def test_what_has_ended_can_be_forgotten() -> None:
    busy = BusyTimes()
    assert [busy.reserve(at, 2.0) for at in (0.0, 5.0, 1.0)] == [0.0, 5.0, 2.0]
    busy.forget(4.0)
    assert busy.reserve(0.0, 1.0) == 0.0
    assert busy.reserve(5.5, 1.0) == 7.0
