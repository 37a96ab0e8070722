"""A skip is a failure in CI only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.skip(reason="no emulator")
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_known_fault():
    assert False
"""
WHOLE_MODULE = """
import pytest

pytest.skip("no compiler", allow_module_level=True)
"""


def outcomes(folder: Path, **environment: str) -> str:
    """Return pytest's summary for a folder of tests, with this workspace's configuration."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--continue-on-collection-errors", f"--rootdir={folder}", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A skipped test, one with a known fault, and a module that skips itself."""
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_whole.py").write_text(WHOLE_MODULE)
    return tmp_path


def test_skips_are_told_on_a_persons_machine(folder: Path) -> None:
    assert "2 skipped, 1 xfailed" in outcomes(folder)


def test_skips_are_failures_in_ci(folder: Path) -> None:
    assert "1 xfailed, 2 errors" in outcomes(folder, CI="true")
