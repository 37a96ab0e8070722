"""`make help` lists every target."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_help_lists_every_target() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = subprocess.run(
        ["make", "--no-print-directory"], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert [line.split()[0] for line in listed.splitlines()] == phony.split()
    assert all(len(line.split()) > 2 for line in listed.splitlines())


def test_ci_runs_what_people_run() -> None:
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()
