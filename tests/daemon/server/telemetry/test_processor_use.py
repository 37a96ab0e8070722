from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.server.telemetry.processor_use import OtherPrograms, OthersUse

OURS, CHILD = 7, 8


def write(proc: Path, *, work: int, idle: int, ours: int = 0, child: int | None = None) -> None:
    """Write the ticks of two processors, of our process and of its child."""
    (proc / "stat").write_text(f"cpu  {work} 0 0 {idle} 0 0 0 99 0 0\ncpu0 0\ncpu1 0\nintr 5\n")
    write_process(proc, OURS, ours, [] if child is None else [CHILD])
    if child is not None:
        write_process(proc, CHILD, child, [])


def write_process(proc: Path, pid: int, ticks: int, children: list[int]) -> None:
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0\n")
    (proc / str(pid) / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))


def test_others_use_what_is_busy_and_not_ours(tmp_path: Path) -> None:
    programs = OtherPrograms(OURS, tmp_path)
    write(tmp_path, work=1000, idle=1000, ours=100, child=50)
    assert programs.look() is None
    write(tmp_path, work=1150, idle=1050, ours=120, child=80)
    assert programs.look() == OthersUse(1.0, 2)  # 150 ticks of work, 50 of them ours, of 200


def test_what_a_new_process_of_ours_uses_is_ours(tmp_path: Path) -> None:
    programs = OtherPrograms(OURS, tmp_path)
    write(tmp_path, work=0, idle=0)
    programs.look()
    write(tmp_path, work=100, idle=100, child=100)
    assert programs.look() == OthersUse(0.0, 2)


@pytest.mark.parametrize(
    "text", [None, "", "cpu 1 2\n", "cpu  1 2 3 4 5 6 7\n", "cpu x 1 1 1 1 1 1\ncpu0 0\n"]
)
def test_a_system_that_does_not_say_is_not_guessed_at(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "stat").write_text(text)
    programs = OtherPrograms(OURS, tmp_path)
    assert [programs.look(), programs.look()] == [None, None]


def test_this_machine_says() -> None:
    programs = OtherPrograms(os.getpid())
    programs.look()
    while (found := programs.look()) is None:
        pass
    assert 0.0 <= found.used <= found.processors
