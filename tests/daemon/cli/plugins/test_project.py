"""The project of a new plugin has the new name everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, ConflictError
from llmd.cli.plugins.project import KINDS, STARTERS, check_name, create_project, distribution_name, renamed
from llmd.host import kinds


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_the_old_name(kind: str, tmp_path: Path) -> None:
    files = create_project(kind, "my-try", tmp_path / "project")
    assert {path for path in (tmp_path / "project").rglob("*") if path.is_file()} == {
        tmp_path / "project" / path for path in files
    }
    for path in files:
        assert "example" not in str(path)
        assert "example" not in (tmp_path / "project" / path).read_text().lower()
    project = tomllib.loads((tmp_path / "project" / "pyproject.toml").read_text())["project"]
    assert project["name"] == distribution_name(kind, "my-try")
    ((name, module),) = project["entry-points"]["llmd"].items()
    assert name == "my-try"
    assert (tmp_path / "project" / "src" / f"{module.replace('.', '/')}.py").exists()
    assert any(path.match("tests/test_*.py") for path in files)


def test_there_is_a_starter_for_every_kind_of_plugin() -> None:
    assert {kind.name for kind in kinds.KINDS} == {kind.rpartition("-")[2] for kind in KINDS}
    assert {path.name for path in STARTERS.iterdir()} == {kind.replace("-", "_") for kind in KINDS}


def test_each_spelling_of_the_name_is_replaced() -> None:
    text = "example: `llmd_backend_example.plugin` ExampleDevice example://x examples"
    assert renamed(text, "my-try") == "my-try: `llmd_backend_my_try.plugin` MyTryDevice my-try://x examples"


@pytest.mark.parametrize("name", ["", "Upper", "9a", "a--b", "a_b", "-a", "a-", "class", "a b"])
def test_a_name_that_users_could_not_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a plugin"):
        check_name(name)


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ConflictError, match="is not empty"):
        create_project("command", "hello", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
