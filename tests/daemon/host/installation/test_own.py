"""What comes with llmd is replaced only by newer versions, and errors say how to get it back."""

from __future__ import annotations

import json
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from llmd.api.errors import ConflictError
from llmd.host.installation.own import (
    OWN_PLUGINS,
    check_replacement,
    checkout,
    how_to_restore,
    own_distribution,
    release,
)
from llmd.host.names import CORE_DISTRIBUTION

ROOT = Path(__file__).parents[4]


def test_every_plugin_of_this_repository_is_known() -> None:
    projects = [
        tomllib.loads(path.read_text())["project"]
        for path in [*ROOT.glob("plugins/*/pyproject.toml"), ROOT / "tui" / "pyproject.toml"]
    ]
    assert {
        project["name"]: next(iter(project["entry-points"]["llmd"])) for project in projects
    } == OWN_PLUGINS


@pytest.mark.parametrize("version", ["0.1.0", "0.1", "0.0.9"])
def test_what_is_not_newer_does_not_replace_a_part_of_llmd(version: str) -> None:
    with pytest.raises(ConflictError, match=r"llmd-backend-cpu 0\.1\.0 comes with llmd") as caught:
        check_replacement("llmd-backend-cpu", version, "0.1.0")
    assert "another name" in caught.value.hint


def test_a_newer_version_a_missing_part_and_other_plugins_are_installed() -> None:
    check_replacement("llmd-backend-cpu", "0.2.0", "0.1.0")
    check_replacement("llmd-backend-cpu", "0.10.0rc1", "0.9.0")
    check_replacement("llmd-backend-cpu", "0.1.0", "")
    check_replacement("llmd-backend-mine", "0.1.0", "0.1.0")


def test_only_the_numbers_of_a_release_count() -> None:
    assert release("0.10.2rc1") == (0, 10, 2)
    assert release("odd") == ()


def test_a_part_of_llmd_is_known_by_both_names() -> None:
    assert own_distribution("cpu") == own_distribution("LLMD_backend.cpu") == "llmd-backend-cpu"
    assert own_distribution("mine") == ""


def test_the_way_back_is_that_of_this_environment() -> None:
    text = metadata.distribution(CORE_DISTRIBUTION).read_text("direct_url.json")
    is_editable = bool(text and json.loads(text).get("dir_info", {}).get("editable"))
    assert bool(checkout()) == is_editable
    if is_editable:
        assert (Path(checkout()) / "Makefile").exists()
        assert how_to_restore("llmd-tui") == f"`make -C {shlex.quote(checkout())} setup` installs llmd-tui"
        assert how_to_restore("llmd-backend-cuda").startswith("`llmd plugins install ")
    else:
        assert "wheelhouse/" in how_to_restore("llmd-tui")
