"""Frames never overlap, are freed in order, and stay at the beginning of the buffer."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd_transport.ring_space import ALIGNMENT, RingSpace

SIZE = 16 * ALIGNMENT


@given(st.lists(st.one_of(st.none(), st.integers(0, SIZE)), max_size=60))
def test_frames_do_not_overlap_and_lie_in_the_buffer(history: list[int | None]) -> None:
    space = RingSpace(SIZE)
    held: deque[tuple[int, int]] = deque()
    for num_bytes in history:
        if num_bytes is None:
            if held:
                held.popleft()
                space.free_oldest()
            continue
        begin = space.place(num_bytes)
        if begin is None:
            assert held, "a frame that fits the empty buffer has a place"
            continue
        end = begin + num_bytes
        assert begin % ALIGNMENT == 0
        assert 0 <= begin <= end <= SIZE
        assert all(end <= other or begin >= other_end for other, other_end in held)
        assert begin not in {other for other, _ in held}
        space.add(begin, num_bytes)
        held.append((begin, end))
        assert len(space) == len(held)


def test_a_frame_of_the_whole_buffer_waits_for_all_others() -> None:
    space = RingSpace(SIZE)
    space.add(0, 1)
    assert space.place(SIZE) is None
    space.free_oldest()
    assert space.place(SIZE) == 0


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_frames_that_are_freed_soon_use_little_of_the_buffer(in_flight: int) -> None:
    space = RingSpace(SIZE)
    ends = []
    for number in range(100):
        begin = space.place(ALIGNMENT)
        assert begin is not None
        space.add(begin, ALIGNMENT)
        ends.append(begin + ALIGNMENT)
        if number >= in_flight - 1:
            space.free_oldest()
    assert max(ends) <= (in_flight + 1) * ALIGNMENT
