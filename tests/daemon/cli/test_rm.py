"""`llmd rm` removes models that llmd pulled, copied or derived, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.config.directories import Directories
from llmd.registry.derived import DerivedModel
from llmd.registry.spools import SpoolHeader, Spools
from llmd.registry.store import Store
from tests.serving.home import LLMD, Home
from tests.serving.model import write_model
from tests.serving.pulled import install_pulled
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]


@pytest.fixture
def models(tmp_path: Path, llmd: Llmd) -> Path:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "tiny")
    install_pulled(models, "one", models / "tiny")
    llmd("cp", "one", "two")
    return models


def test_says_how_many_bytes_are_free_again(llmd: Llmd, models: Path) -> None:
    size = sum(path.stat().st_size for path in (models / "one").iterdir())
    done = llmd("rm", "one", "two", "--json")
    assert json.loads(done.out)["removed"] == [
        {"name": "one", "freed_bytes": 0},
        {"name": "two", "freed_bytes": size},
    ]
    assert not (models / "one").exists()


def test_a_derived_model_goes_without_its_base(llmd: Llmd, models: Path) -> None:
    Store(models, {}).derived.save("mario", DerivedModel(base="one", created=0.0))
    assert json.loads(llmd("rm", "mario", "--json").out)["removed"] == [{"name": "mario", "freed_bytes": 0}]
    assert (models / "one").exists()
    assert llmd("rm", "mario").code == 3


def test_a_users_own_directory_is_not_deleted(llmd: Llmd, models: Path) -> None:
    done = llmd("delete", "tiny")
    assert done.code == 9
    assert "delete the directory yourself" in done.err
    assert (models / "tiny" / "config.json").exists()


@pytest.mark.parametrize(("name", "code"), [("absent", 3), ("guide", 9), ("../models", 2), ("on", 3)])
def test_what_is_no_whole_name_of_a_fetched_model_is_refused(
    llmd: Llmd, models: Path, name: str, code: int
) -> None:
    assert llmd("rm", name).code == code


def test_a_loaded_model_is_not_removed(home: Home) -> None:
    models = home.folder / "data" / "llmd" / "models"
    install_pulled(models, "mine", models / "tiny")
    with home.serve("mine"):
        done = home.llmd("rm", "mine")
        assert done.returncode == 9
        assert "`llmd stop mine`" in done.stderr
        assert home.llmd("run", "mine", "Hi", "-n", "1").returncode == 0
        home.llmd("stop", "mine")
        assert home.llmd("rm", "mine").returncode == 0


def test_a_terminal_is_asked_first(home: Home) -> None:
    home.llmd("cp", "tiny", "mine")
    for answer, status in (("n", 130), ("y", 0)):
        with terminal((*LLMD, "rm", "mine"), home.environment) as screen:
            screen.wait_for("remove mine?")
            screen.type(f"{answer}\n")
            assert screen.end() == status
    assert "mine" not in {row["name"] for row in home.json("list")["models"]}
    home.llmd("cp", "tiny", "mine")
    with terminal((*LLMD, "rm", "mine", "--yes"), home.environment) as screen:
        assert screen.end() == 0


def test_cached_prompts_go_with_their_model(llmd: Llmd, models: Path, tmp_path: Path) -> None:
    spools = Spools(Directories.of(os.environ).cache)
    for name in ("one", "tiny"):
        directory = models / name
        path = spools.path(directory)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SpoolHeader(str(directory.resolve()), "f").encoded())
    kept = [spools.path(models / name) for name in ("one", "tiny")]
    llmd("rm", "one", "--yes")
    assert [path.exists() for path in kept] == [True, True], "two is the same model"
    llmd("rm", "two", "--yes")
    assert [path.exists() for path in kept] == [False, True]
