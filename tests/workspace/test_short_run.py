"""The list of what `make test` runs of the longest tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.short_run import is_kept, unused_patterns

ROOT = Path(__file__).parents[2]
KEPT = {
    "tests/test_a.py": ["*-cpu"],
    "tests/test_a.py::test_few": ["one [1]-*", "two"],
    "tests/test_a.py::test_long": [],
}


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("tests/test_a.py::test_any[f32-cpu]", True),
        ("tests/test_a.py::test_any[f32-reference]", False),
        ("tests/test_a.py::test_without_cases", True),
        ("tests/test_a.py::test_few[one [1]-cuda]", True),
        ("tests/test_a.py::test_few[two]", True),
        ("tests/test_a.py::test_few[three-cpu]", False),
        ("tests/test_a.py::test_long", False),
        ("tests/test_b.py::test_any[f32-reference]", True),
    ],
)
def test_a_short_run_has_the_cases_that_fit_a_pattern(node_id: str, *, expected: bool) -> None:
    assert is_kept(node_id, KEPT) == expected


def test_what_fits_no_test_is_named() -> None:
    some = [
        "tests/test_a.py::test_any[cpu]",
        "tests/test_a.py::test_few[two]",
        "tests/test_a.py::test_few[one [1]-x]",
    ]
    assert unused_patterns(some, KEPT) == ["tests/test_a.py: *-cpu", "tests/test_a.py::test_long"]
    assert (
        unused_patterns([*some, "tests/test_a.py::test_b[x-cpu]", "tests/test_a.py::test_long"], KEPT) == []
    )


def test_a_run_of_all_tests_fails_if_the_list_names_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = exhaustive: long\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_other.py").write_text("def test_x(): ...\n")
    command = (sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "names what no test has: tests/conformance/test_backends.py" in done.stderr
