from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.cli.composition import build_store
from llmd.cli.config.absent_models import absent_models, models_of
from llmd.config.config_file import values_of_text
from llmd.config.directories import Directories

Llmd = Callable[..., Any]

TEXT = "[models.guide]\nslots = 2\n[models.guid]\nslots = 3\nslot = 3\n[models.'org/a']\nmax_ctx = 3\n"


def test_models_that_are_not_on_this_machine_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    directories = Directories.of({"XDG_DATA_HOME": str(tmp_path)})
    values = values_of_text(file, TEXT, lambda _error: None)
    first, second = absent_models(models_of(values), build_store(directories))
    assert first.message == f"{file}:4: settings for guid, but there is no such model on this machine"
    assert first.hint.startswith("the nearest name is guide; ")
    assert (second.line, "`llmd pull org/a`" in second.hint) == (7, True)


def test_settings_of_an_absent_model_are_written_with_a_warning(llmd: Llmd, file: Path) -> None:
    done = llmd("config", "set", "max_ctx", "99", "--model", "nosuch")
    assert (done.code, done.out) == (0, f"models.nosuch.max_ctx = 99 in {file}\n")
    assert done.err.startswith("llmd: warning: settings for nosuch, but there is no such model")
    assert llmd("config", "set", "max_ctx", "99", "--model", "guide").err == ""


def test_a_check_warns_of_settings_of_an_absent_model(llmd: Llmd, file: Path) -> None:
    llmd("config", "set", "max_ctx", "99", "--model", "nosuch")
    for done in (llmd("config", "check"), llmd("config", "check", str(file))):
        assert done.code == 0
        assert done.out.startswith(f"warning: {file}:2: settings for nosuch, but there is no such model")
    answer = json.loads(llmd("config", "check", "--json").out)
    assert (answer["errors"], [warning["line"] for warning in answer["warnings"]]) == ([], [2])


def test_a_check_warns_of_absent_models_that_are_to_be_loaded(
    llmd: Llmd, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[server]\nload = ["guide", "other", "guidx"]\nalias = ["other=guide"]\n')
    for done in (llmd("config", "check"), llmd("config", "check", str(file))):
        assert done.code == 0
        (warning, _) = done.out.split("\n", 1)
        assert warning.startswith(
            f"warning: {file}:2: load: there is no model 'guidx'; the nearest names are guide"
        )
        assert done.out.count("warning") == 1
    monkeypatch.setenv("LLMD_LOAD", "guide, guidx,")
    assert "warning: LLMD_LOAD: load: there is no model 'guidx'" in llmd("config", "check").out


def test_a_load_that_is_no_list_is_an_error_alone(llmd: Llmd, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[server]\nload = 5\n")
    done = llmd("config", "check", str(file))
    assert (done.code, done.out.count("warning")) == (8, 0)
    assert "server.load" in done.out
