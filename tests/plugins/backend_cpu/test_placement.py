"""How many threads compute on which machine, and when that is measured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api.machine import num_processors
from llmd_backend_cpu import _ext, placement
from llmd_backend_cpu.bandwidth import read_rate
from llmd_backend_cpu.placement import Placement, best_of, chosen_placement, description, spin_us, suggested
from llmd_backend_cpu.topology import usable_processors
from tests.plugins.backend_cpu.machines import Machine

# Six performance cores of two logical processors each, then eight efficiency cores.
LAPTOP = Machine(range(20), siblings=6, single=range(12, 20), slow=range(12, 20), slow_told_by="cpu_atom")
SERVER = Machine(range(16), siblings=8, nodes=[{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}])
SMALL_VM = Machine(range(2))
VM_OF_ONE_CORE = Machine(range(2), siblings=1)
CONTAINER = Machine(range(16), siblings=8, quota=1.5)
BOUND = Machine(range(16), siblings=8, allowed={5})


def both(*processors: int) -> tuple[Placement, Placement]:
    """Return an unpinned and a pinned placement."""
    return Placement(len(processors)), Placement(len(processors), processors)


FAST, SLOW, SIBLINGS = range(6), range(12, 20), range(6, 12)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (LAPTOP, (*both(*FAST), *both(*FAST, *SLOW), *both(*FAST, *SLOW, *SIBLINGS))),
        (SERVER, (*both(*range(8)), *both(*range(16)))),
        (SMALL_VM, (Placement(2),)),
        (VM_OF_ONE_CORE, (*both(0), *both(0, 1))),
        (CONTAINER, (Placement(2),)),
        (BOUND, (Placement(1),)),
    ],
    ids=["laptop", "server", "small vm", "vm of one core", "container", "bound"],
)
def test_suggests_performance_cores_then_all_cores_then_all_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: Machine, expected: tuple[Placement, ...]
) -> None:
    machine.use(monkeypatch, tmp_path)
    assert suggested(usable_processors(tmp_path), num_processors(tmp_path)) == expected


def test_processors_that_no_grant_covers_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Machine(range(8), siblings=4, quota=6).use(monkeypatch, tmp_path)
    found = suggested(usable_processors(tmp_path), num_processors(tmp_path))
    assert found == (*both(0, 1, 2, 3), *both(0, 1, 2, 3, 4, 5))


TWO_SIZES = (*both(0, 1), *both(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ([(10, 10), (10, 10), (10, 10), (10, 10)], 0),
        ([(10, 10), (10, 10.9), (10.5, 10), (10.4, 10.4)], 0),
        ([(10, 10), (12, 10), (10, 10), (10, 10)], 1),
        ([(10, 10), (9, 9), (9, 14), (9, 14.5)], 2),
        ([(10, 10), (10, 10), (10, 11), (20, 20)], 3),
    ],
)
def test_more_threads_and_bound_ones_must_be_clearly_better(
    rates: list[tuple[float, float]], best: int
) -> None:
    assert best_of(TWO_SIZES, rates) == TWO_SIZES[best]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Record what is measured; the last placement wins."""
    calls: list[Any] = []

    def compare(_isa: str, placements: list[Any], *_: float) -> list[tuple[float, float]]:
        calls.append(placements)
        return [(1.0, 1.0)] * (len(placements) - 1) + [(2.0, 2.0)]

    monkeypatch.setattr(_ext, "compare", compare)
    chosen_placement.cache_clear()
    yield calls
    chosen_placement.cache_clear()


def test_measures_once_where_there_is_a_choice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measured: list[Any]
) -> None:
    SERVER.use(monkeypatch, tmp_path)
    assert chosen_placement("generic") == chosen_placement("generic") == Placement(16, tuple(range(16)))
    assert measured == [[(8, []), (8, [*range(8)]), (16, []), (16, [*range(16)])]]


def test_measures_nothing_where_there_is_no_choice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, measured: list[Any]
) -> None:
    SMALL_VM.use(monkeypatch, tmp_path)
    assert chosen_placement("generic") == Placement(2)
    assert measured == []


def test_threads_spin_only_where_each_has_a_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    SMALL_VM.use(monkeypatch, tmp_path)
    assert (spin_us(2), spin_us(3)) == (placement.SPIN_US, 0)


def test_the_description_says_between_what_a_measurement_chooses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    LAPTOP.use(monkeypatch, tmp_path)
    assert (description(), description(1), description(14)) == ("6 to 20 threads", "1 thread", "14 threads")


def test_the_native_comparison_measures_each_placement() -> None:
    processor = min(os.sched_getaffinity(0))
    rates = _ext.compare("generic", [(1, []), (2, []), (2, [processor, processor])], 0, 0, 0.01)
    assert len(rates) == 3
    assert all(decode > 0 and prefill > 0 for decode, prefill in rates)
    with pytest.raises(ValueError, match="a processor for each thread"):
        _ext.compare("generic", [(2, [processor])], 0, 0, 0.01)


def tasks() -> set[int]:
    """Return the threads of this process."""
    return {int(folder.name) for folder in Path("/proc/self/task").iterdir()}


def test_threads_of_the_pool_stay_on_their_processors_and_the_caller_is_free() -> None:
    before, known = os.sched_getaffinity(0), tasks()
    processor = max(before)
    device = _ext.Device("generic", 3, 0, [processor] * 3)
    own = tasks() - known
    assert [os.sched_getaffinity(task) for task in own] == [{processor}] * 2
    assert os.sched_getaffinity(0) == before
    del device
    assert not own & tasks()


def test_threads_sleep_in_the_kernel_when_nothing_is_asked_for() -> None:
    def spent(task: int) -> str:
        """Return nanoseconds of processor time, and how often the thread was scheduled."""
        return Path(f"/proc/self/task/{task}/schedstat").read_text()

    def asleep(task: int) -> bool:
        return ") S " in Path(f"/proc/self/task/{task}/stat").read_text()

    known = tasks()
    device = _ext.Device("generic", 3, 100)
    own = sorted(tasks() - known)
    read_rate(device, 0.01)
    for _ in range(100):
        before = [spent(task) for task in own]
        np.linalg.inv(np.eye(400) + 1)  # takes far longer than threads spin
        if [spent(task) for task in own] == before and all(asleep(task) for task in own):
            return
    pytest.fail("the threads never came to rest")
