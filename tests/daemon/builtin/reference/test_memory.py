from __future__ import annotations

from pathlib import Path

import pytest

from llmd.builtin.reference import memory


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [("max", "5", 2048), ("1500", "1000", 500), ("900000", "0", 2048), ("100", "200", 0)],
)
def test_the_smaller_of_machine_and_control_group_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, used: str, expected: int
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  2 kB\n")
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text(used + "\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available_bytes() == expected


def test_a_machine_without_control_groups_counts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 3 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "absent")
    assert memory.available_bytes() == 3072
