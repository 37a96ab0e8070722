from __future__ import annotations

import os
import subprocess
from pathlib import Path

from llmd.server.telemetry.daemon_state import (
    FRONT,
    ModelState,
    ProcessUse,
    engine_use,
    process_use,
    processes_of,
)


def test_this_process_takes_memory_and_descriptors(tmp_path: Path) -> None:
    before = process_use(os.getpid())
    assert before is not None
    assert before.resident_bytes > 1 << 20
    with (tmp_path / "file").open("w"):
        during = process_use(os.getpid())
    assert during is not None
    assert during.descriptors == before.descriptors + 1


def test_what_has_gone_or_is_no_process_takes_nothing(tmp_path: Path) -> None:
    assert process_use(7, tmp_path) is None
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "statm").write_text("")
    assert process_use(7, tmp_path) is None


def test_an_engine_takes_what_its_processes_take() -> None:
    alone = engine_use(os.getpid())
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        together = engine_use(os.getpid())
    assert alone is not None
    assert together is not None
    assert together.descriptors >= alone.descriptors + 1 + 3


def test_an_engine_whose_processes_are_not_told_takes_what_it_takes_itself(tmp_path: Path) -> None:
    write_process(tmp_path / "7", "12 5 0", files=2)
    assert engine_use(7, tmp_path) == process_use(7, tmp_path)
    children = tmp_path / "7" / "task" / "7" / "children"
    children.parent.mkdir(parents=True)
    children.write_text("8 9 ")
    write_process(tmp_path / "8", "9 3 0", files=1)
    page = os.sysconf("SC_PAGE_SIZE")
    assert engine_use(7, tmp_path) == ProcessUse(8 * page, 3)
    assert engine_use(9, tmp_path) is None


def write_process(directory: Path, memory: str, *, files: int) -> None:
    (directory / "fd").mkdir(parents=True)
    (directory / "statm").write_text(memory)
    for number in range(files):
        (directory / "fd" / str(number)).touch()


def test_engines_are_named_by_their_models() -> None:
    models = [ModelState("tiny", "loaded", 0, os.getpid()), ModelState("other", "loading", 0)]
    assert set(processes_of(models)) == {FRONT, "engine tiny"}
