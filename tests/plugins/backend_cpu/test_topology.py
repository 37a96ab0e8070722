"""Cores, siblings, efficiency cores and nodes are read from sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd_backend_cpu.topology import usable_processors
from tests.plugins.backend_cpu.machines import Machine


def test_without_a_word_from_the_system_all_processors_are_cores_of_one_kind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Machine(range(3)).use(monkeypatch, tmp_path)
    found = usable_processors(tmp_path)
    assert [(one.number, one.sibling, one.slow, one.node) for one in found] == [
        (number, 0, False, 0) for number in range(3)
    ]


def test_the_first_of_each_core_comes_before_its_siblings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Machine(range(8), siblings=4).use(monkeypatch, tmp_path)
    found = usable_processors(tmp_path)
    assert [(one.number, one.sibling) for one in found] == [(n, n // 4) for n in range(8)]


def test_siblings_outside_of_the_affinity_mask_take_no_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Machine(range(8), siblings=4, allowed={4, 5, 1}).use(monkeypatch, tmp_path)
    assert [(one.number, one.sibling) for one in usable_processors(tmp_path)] == [(1, 0), (4, 0), (5, 1)]


@pytest.mark.parametrize("told_by", ["cpu_atom", "cpu_capacity", "cpufreq/cpuinfo_max_freq"])
def test_performance_cores_come_before_efficiency_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told_by: str
) -> None:
    Machine(range(6), slow={0, 1}, slow_told_by=told_by).use(monkeypatch, tmp_path)
    assert [one.number for one in usable_processors(tmp_path)] == [2, 3, 4, 5, 0, 1]


def test_cores_of_one_kind_may_differ_a_little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(range(4), slow={0, 1}, slow_told_by="cpufreq/cpuinfo_max_freq", slow_speed=950)
    machine.use(monkeypatch, tmp_path)
    assert not any(one.slow for one in usable_processors(tmp_path))


def test_a_mask_of_efficiency_cores_alone_has_one_kind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Machine(range(6), slow={0, 1}, slow_told_by="cpu_atom", allowed={0, 1}).use(monkeypatch, tmp_path)
    assert not any(one.slow for one in usable_processors(tmp_path))


def test_nodes_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Machine(range(4), nodes=[{0, 2}, {1, 3}]).use(monkeypatch, tmp_path)
    assert [(one.node, one.number) for one in usable_processors(tmp_path)] == [(0, 0), (0, 2), (1, 1), (1, 3)]


def test_reads_this_machine() -> None:
    found = usable_processors()
    assert found
    assert found[0].sibling == 0
    assert not found[0].slow
