"""A child is killed for computing or waiting too long, but not because the machine is busy."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from llmd.process.limits import (
    MachineLoad,
    TimeLimit,
    TimeSpent,
    delayed_seconds,
    processor_seconds,
)

LIMIT = TimeLimit(processor_s=10.0, wall_s=60.0)


def test_a_limit_of_one_kind_of_time() -> None:
    assert TimeLimit.of_processor_time(10.0) == LIMIT
    compiling = TimeLimit.of_wall_time(10.0)
    assert not compiling.is_reached(TimeSpent(processor_s=99.0, wall_s=9.9))
    assert compiling.is_reached(TimeSpent(processor_s=0.0, wall_s=10.0))


@pytest.mark.parametrize(
    ("processor_s", "wall_s", "reached"),
    [
        (0.0, 0.0, False),
        (9.9, 40.0, False),
        (10.0, 40.0, True),
        (0.1, 59.9, False),
        (0.1, 60.0, True),
        (160.0, 9.9, False),
        (160.0, 10.0, True),
    ],
    ids=["new", "starved", "computed", "waits", "hangs", "many_threads", "many_threads_computed"],
)
def test_a_limit_is_reached_by_processor_time_or_by_the_clock(
    processor_s: float, wall_s: float, *, reached: bool
) -> None:
    assert LIMIT.is_reached(TimeSpent(processor_s, wall_s)) == reached


@pytest.mark.parametrize(
    ("processor_s", "wall_s", "wait_s"),
    [
        (0.0, 0.0, 10.0),
        (4.0, 10.0, 6.0),
        (9.99, 20.0, 0.1),
        (0.5, 58.0, 2.0),
        (160.0, 4.0, 6.0),
        (0.0, 61.0, 0.0),
    ],
)
def test_it_looks_again_when_a_limit_may_be_reached(processor_s: float, wall_s: float, wait_s: float) -> None:
    assert LIMIT.wait_s(TimeSpent(processor_s, wall_s)) == pytest.approx(wait_s)


def test_the_processor_time_of_a_process_is_what_it_used() -> None:
    before = time.process_time()
    told = processor_seconds(os.getpid())
    alone = processor_seconds(os.getpid(), with_children=False)
    assert told is not None
    assert alone is not None
    children = os.times()
    tick = 1 / os.sysconf("SC_CLK_TCK")
    other = children.children_user + children.children_system
    assert before - 2 * tick <= alone <= time.process_time() + 2 * tick
    assert before + other - 2 * tick <= told <= time.process_time() + other + 2 * tick


def test_the_name_of_a_process_may_contain_parentheses(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a (b) c) S 1 7 7 0 -1 4194304 9 0 0 0 250 50 0 0 20 0 1 0 5 6")
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert processor_seconds(7, with_children=False, proc=tmp_path) == 300 * tick
    assert processor_seconds(8, with_children=False, proc=tmp_path) is None


def test_the_time_of_a_process_that_is_gone_is_unknown() -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    assert processor_seconds(child) is None


def test_the_delay_of_a_process_is_that_of_its_most_delayed_thread() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel keeps no delays of threads")
    own = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    before = int(own.read_text().split()[1]) / 1e9
    assert delayed_seconds(os.getpid()) >= before > 0
    assert delayed_seconds(1 << 30) == 0


@pytest.mark.parametrize(("delayed_s", "starved"), [(0.0, False), (30.0, False), (30.1, True)])
def test_a_child_that_mostly_waited_for_a_processor_is_starved(delayed_s: float, *, starved: bool) -> None:
    assert TimeSpent(2.0, 60.0, delayed_s).is_starved == starved


def test_the_load_of_this_machine_is_for_all_its_processors() -> None:
    load = MachineLoad.now()
    assert load.num_processors == os.cpu_count()
    assert load.average >= 0
