"""`llmd config paths` lists the files and folders of this user."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Llmd = Callable[..., Any]


def test_names_places_below_the_users_folders_and_whether_they_exist(llmd: Llmd, tmp_path: Path) -> None:
    (tmp_path / "data" / "llmd" / "models").mkdir(parents=True)
    rows = {row["name"]: row for row in json.loads(llmd("config", "paths", "--json").out)["paths"]}
    assert rows["models"] == {
        "name": "models",
        "path": str(tmp_path / "data" / "llmd" / "models"),
        "exists": True,
    }
    assert rows["state"]["path"] == str(tmp_path / "state" / "llmd")
    assert rows["config"] == {
        "name": "config",
        "path": str(tmp_path / "config" / "llmd" / "config.toml"),
        "exists": False,
    }


def test_shows_the_file_that_stands_in_for_the_users(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.touch()
    assert f"config\t{file}\tyes" in llmd("config", "paths", "--plain", "--config", str(file)).out
    monkeypatch.setenv("LLMD_CONFIG", str(file))
    assert f"config\t{file}\tyes" in llmd("config", "paths", "--plain").out
