"""`llmd plugins new` makes a project with passing tests; tests/packaging/test_new_plugins.py installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.cli.plugins.project import KINDS

Llmd = Callable[..., Any]


def test_writes_into_a_folder_of_its_own_and_says_what_next(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = llmd("plugins", "new", "command", "hello")
    assert done.out.splitlines() == [
        "created llmd-command-hello with 6 files; try it with:",
        "  llmd plugins install ./llmd-command-hello",
        "  llmd check hello",
    ]
    assert (tmp_path / "llmd-command-hello" / "pyproject.toml").exists()
    assert llmd("plugins", "new", "command", "hello").code == 9


def test_path_names_another_folder(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("plugins", "new", "command", "hello", "--path", str(tmp_path / "there"), "--json")
    document = json.loads(done.out)
    assert document["path"] == str(tmp_path / "there")
    assert "pyproject.toml" in document["files"]


def test_an_unknown_kind_is_a_usage_error(llmd: Llmd) -> None:
    done = llmd("plugins", "new", "gadget", "hello")
    assert done.code == 2
    assert "reasoning-parser" in done.err


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "tool-parser" else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in KINDS],
)
def test_the_tests_of_a_new_project_pass(llmd: Llmd, tmp_path: Path, kind: str) -> None:
    project = tmp_path / "project"
    assert llmd("plugins", "new", kind, "my-try", "--path", str(project)).code == 0
    path = os.pathsep.join([str(project / "src"), *sys.path])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-c",
            "/dev/null",
            "--rootdir",
            str(project),
            "-p",
            "no:asyncio",
        ],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("kind", "name"), [("command", "run"), ("tool-parser", "hermes"), ("backend", "cpu")]
)
def test_a_name_of_llmd_is_refused(llmd: Llmd, tmp_path: Path, kind: str, name: str) -> None:
    done = llmd("plugins", "new", kind, name, "--path", str(tmp_path / "there"))
    assert (done.code, "choose another name" in done.err) == (9, True)
    assert not (tmp_path / "there").exists()
