"""Launches are divided where a stage waits for weights."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

from llmd_backend_cuda.runtime import KernelSpec, Launch
from llmd_backend_cuda.segments import segments_of


class Nothing(ctypes.Structure):
    """Arguments of a kernel that is not run."""

    _fields_ = ()


def launch(name: str) -> Launch:
    kernel = SimpleNamespace(spec=KernelSpec.of(name, name))
    return Launch(kernel, (1, 1, 1), 32, Nothing(), overlaps=True)


LAUNCHES = [(part, launch(name)) for name, part in zip("abcdefg", (0, 1, 1, 2, 4, 5, 5), strict=True)]


def names(streamed: set[int]) -> list[tuple[int | None, str]]:
    found = segments_of(LAUNCHES, streamed)
    return [(one.part, "".join(launch.kernel.spec.name for launch in one.launches)) for one in found]


def test_without_streamed_parts_there_is_one_segment() -> None:
    assert names(set()) == [(None, "abcdefg")]


def test_each_streamed_part_is_a_segment_and_so_are_the_parts_between() -> None:
    assert names({1, 2, 5}) == [(None, "a"), (1, "bc"), (2, "d"), (None, "e"), (5, "fg")]


def test_only_the_first_launch_of_a_streamed_part_begins_after_the_one_before_it() -> None:
    found = [[launch.overlaps for launch in one.launches] for one in segments_of(LAUNCHES, {1})]
    assert found == [[True], [False, True], [True, True, True, True]]
