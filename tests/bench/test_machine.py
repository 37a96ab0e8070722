"""The machine is described, and the CPU time of other processes is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bench.machine import KERNEL_THREADS, Occupation, adopt_orphans, busy_s, busy_ticks, describe, own_s


def test_the_machine_is_described() -> None:
    text = describe()
    assert f"{len(os.sched_getaffinity(0))} CPUs" in text
    assert "family" in text


CPUS = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("busy_s", "own_s", "share"),
    [
        (2.0 * CPUS, 0.0, 1.0),
        (2.0 * CPUS, 1.5 * CPUS, 0.25),
        (0.5 * CPUS, 0.5 * CPUS, 0.0),
        (0.5 * CPUS, 0.6 * CPUS, 0.0),  # both are counted in separate ticks
    ],
)
def test_own_work_is_not_that_of_others(busy_s: float, own_s: float, share: float) -> None:
    looks = iter([(10.0, 100.0, 7.0), (12.0, 100.0 + busy_s, 7.0 + own_s)])
    assert Occupation(lambda: next(looks)).of_others() == pytest.approx(share)


def test_idle_processors_and_the_interrupts_of_a_disk_are_not_work_of_processes() -> None:
    assert busy_ticks("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9") == 80000321


def test_threads_of_the_kernel_are_not_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = busy_s()
    monkeypatch.setattr("bench.machine.family_cpu_s", lambda pid: 1e6 if pid == KERNEL_THREADS else 0.0)
    assert busy_s() < before - 9e5


def test_processor_time_of_this_process_is_in_its_own_and_in_that_of_all() -> None:
    own, busy, computed = own_s(), busy_s(), time.process_time()
    while time.process_time() - computed < 0.2:
        sum(range(100_000))
    assert own_s() - own > 0.15
    assert busy_s() - busy > 0.15


def test_time_of_a_process_whose_parent_has_ended_stays_our_own() -> None:
    adopt_orphans()
    own = own_s()
    loop = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {loop!r}]).pid)"
    started = subprocess.run([sys.executable, "-c", parent], check=True, stdout=subprocess.PIPE)
    os.waitpid(int(started.stdout), 0)
    assert own_s() - own > 0.25


def test_what_this_process_has_started_is_its_own() -> None:
    own = own_s()
    loop = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", loop], check=True)
    assert own_s() - own > 0.25
