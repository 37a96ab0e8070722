"""A test run reports which instruction sets it tested, and fails if it cannot test a required one."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llmd_backend_cpu._ext import available_isas
from tests.instruction_sets import KNOWN, VARIABLE, missing, summary

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "plugins" / "backend_cpu" / "csrc" / "cpu_features.cpp"
TESTS = """
import pytest
from tests.instruction_sets import TESTED

@pytest.mark.parametrize("isa", ["avx2", "generic"])
def test_device(record_property, isa):
    record_property(TESTED, isa)

def test_other():
    pass
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run some tests with this workspace's pytest configuration."""
    (folder / "test_some.py").write_text(TESTS)
    kept = {k: v for k, v in os.environ.items() if k != VARIABLE and not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, f"--rootdir={folder}", str(folder), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False
    )


def test_every_unit_of_the_cpu_backend_is_known_in_its_order() -> None:
    names = re.findall(r'push_back\(\{"(\w+)"', PROBE.read_text())
    x86, aarch64 = KNOWN["x86_64"], KNOWN["aarch64"]
    assert names == [*x86[:-1], *aarch64[:-1], "generic"]
    assert x86[-1] == aarch64[-1] == "generic"
    assert set(available_isas()) <= set(KNOWN[platform.machine()])


def test_the_end_of_a_run_names_what_was_tested_and_what_was_not(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert summary({"avx2", "generic"}, platform.machine()) in done.stdout
    assert "instruction sets" not in run(tmp_path, "-k", "other").stdout


def test_the_fastest_set_comes_first_and_what_the_machine_could_not_run_is_named() -> None:
    assert summary({"generic", "avx512", "avx2"}, "x86_64") == (
        "instruction sets tested: avx512, avx2, generic; not tested: amx, avx_vnni"
    )
    assert summary({"neon", "generic"}, "aarch64").endswith("not tested: neon_i8mm")
    assert "generic, neon (emulated); not" in summary({"neon (emulated)", "generic"}, "x86_64")
    assert summary(KNOWN["x86_64"], "x86_64").endswith("not tested: none")


def test_a_run_fails_where_the_processor_lacks_a_set_that_it_must_test(tmp_path: Path) -> None:
    lacking = next(name for names in KNOWN.values() for name in names if name not in available_isas())
    done = run(tmp_path, **{VARIABLE: f"generic, {lacking}"})
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"names {lacking}, which this processor lacks; it has {available_isas()[0]}" in done.stderr
    assert run(tmp_path, **{VARIABLE: "generic"}).returncode == 0


def test_a_name_that_is_no_instruction_set_is_refused() -> None:
    assert missing(["avx1024"], ["generic"]).startswith(f"{VARIABLE} names avx1024; known are amx, avx2")
    assert missing(["generic"], ["avx2", "generic"]) == ""
