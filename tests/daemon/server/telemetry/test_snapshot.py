from __future__ import annotations

import os
from pathlib import Path

from llmd.server.telemetry.snapshot import FRONT, ModelState, process_use, processes_of


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


def test_engines_are_named_by_their_models() -> None:
    models = [ModelState("tiny", "loaded", 0, os.getpid()), ModelState("other", "loading", 0)]
    assert set(processes_of(models)) == {FRONT, "engine tiny"}
