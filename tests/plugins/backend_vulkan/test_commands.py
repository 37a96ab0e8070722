"""Segments are cut into submissions; copies of weights run while earlier parts are computed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmd_backend_vulkan.commands import (
    MOST_WORK,
    Buffer,
    Copy,
    Dispatch,
    Segment,
    Shader,
    Slot,
    Submission,
    submissions_of,
)

BUFFER = Buffer(None, 1, 64)
COPY = Copy(BUFFER, 0, BUFFER, 0, 16)


def dispatch(name: str, work: float = 0.0) -> Dispatch:
    """Return a dispatch of which only the name and the work matter."""
    return Dispatch(Shader(name), (), (), (1, 1, 1), work)


def slots() -> list[Slot]:
    """Return two slots; their semaphores are texts."""
    return [Slot(f"filled {number}", f"freed {number}") for number in range(2)]


def layers(count: int, first: int = 0) -> list[Segment]:
    """Return streamed parts, which take turns with the slots."""
    both = slots()
    return [
        Segment([[dispatch(f"part {n}")]], name=f"part {n}", slot=both[n % 2], copies=(COPY,))
        for n in range(first, first + count)
    ]


def names(submissions: Sequence[Submission]) -> list[str]:
    """Return what submissions do: names of copies in brackets, or those of shaders."""
    return [
        f"[{one.name}]"
        if one.copies
        else " ".join(
            dispatch.shader.name for piece in one.pieces for phase in piece.phases for dispatch in phase
        )
        for one in submissions
    ]


def seconds(submissions: Sequence[Submission], copy_s: float, part_s: float) -> float:
    """Return what submissions take on two queues, of which one copies; check the use of semaphores."""
    signalled = {"freed 0": 0.0, "freed 1": 0.0}
    free_at = {"copy": 0.0, "compute": 0.0}
    for one in submissions:
        queue, takes_s = ("copy", copy_s) if one.copies else ("compute", part_s * len(one.pieces))
        begins = max([free_at[queue], *(signalled.pop(semaphore) for semaphore in one.waits)])
        free_at[queue] = begins + takes_s
        for semaphore in one.signals:
            assert semaphore not in signalled, "a semaphore is waited for before it is signalled again"
            signalled[semaphore] = free_at[queue]
    assert signalled.keys() == {"freed 0", "freed 1"}, "the next recording finds both slots free"
    return max(free_at.values())


def test_segments_without_slots_are_one_submission() -> None:
    segments = [Segment([[dispatch("a")], [], [dispatch("b"), dispatch("c")]]), Segment([[dispatch("d")]])]
    (one,) = submissions_of(segments, has_barriers=True)
    assert [len(piece.phases) for piece in one.pieces] == [2, 1]
    assert names(submissions_of(segments, has_barriers=False)) == ["a", "b c", "d"]
    assert submissions_of([Segment([[]])], has_barriers=True) == []


def test_submissions_are_cut_by_their_work() -> None:
    heavy = [
        [dispatch("a", 0.6 * MOST_WORK), dispatch("b", 0.6 * MOST_WORK)],
        [dispatch("c", 0.3 * MOST_WORK)],
    ]
    assert names(submissions_of([Segment(heavy)], has_barriers=True)) == ["a", "b c"]


def test_weights_are_copied_before_the_part_that_runs_meanwhile() -> None:
    resident = Segment([[dispatch("embed")]])
    found = names(submissions_of([resident, *layers(4)], has_barriers=True))
    assert found == [
        "[part 0]",
        "[part 1]",
        "embed",
        "part 0",
        "[part 2]",
        "part 1",
        "[part 3]",
        "part 2",
        "part 3",
    ]


@pytest.mark.parametrize(("copy_s", "part_s"), [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
def test_copies_and_shaders_run_at_once(copy_s: float, part_s: float) -> None:
    found = submissions_of(layers(10), has_barriers=True)
    alone = 10 * (copy_s + part_s)
    overlapped = 10 * max(copy_s, part_s) + min(copy_s, part_s)
    assert seconds(found, copy_s, part_s) == overlapped < alone


def test_a_second_recording_goes_on_with_the_slots() -> None:
    both = [*submissions_of(layers(3), has_barriers=True), *submissions_of(layers(1, 3), has_barriers=True)]
    assert seconds(both, 2.0, 1.0) == 4 * 2.0 + 1.0


def test_a_heavy_part_frees_its_slot_at_its_end() -> None:
    (one,) = layers(1)
    heavy = Segment(
        [[dispatch("a", MOST_WORK)], [dispatch("b", MOST_WORK)]], slot=one.slot, copies=one.copies
    )
    copying, first, last = submissions_of([heavy], has_barriers=True)
    assert (copying.waits, copying.signals) == (("freed 0",), ("filled 0",))
    assert (first.waits, first.signals) == (("filled 0",), ())
    assert (last.waits, last.signals) == ((), ("freed 0",))
