from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import LlmdError
from tests.serving.model import write_model
from tests.serving.running import RunningDaemon, directories_below, running_daemon


def kept(daemon: RunningDaemon) -> dict[str, Any]:
    """Return whether each model stays loaded, by name."""
    return {row["name"]: row["pinned"] for row in daemon.client().ps()}


def test_models_of_the_setting_are_loaded_at_the_start_and_a_reload_changes_them(
    tmp_path: Path, probes: Path
) -> None:
    directories = directories_below(tmp_path, probes)
    for name in ("one", "two"):
        write_model(directories.models / name)
    directories.config.mkdir()
    directories.user_config.write_text('[server]\nload = ["one"]\n')
    with running_daemon(directories, models=()) as daemon:
        assert daemon.serving.models == ("one",)
        assert kept(daemon) == {"one": True}
        directories.user_config.write_text('[server]\nload = "two"\n')
        (change,) = daemon.reload().changed
        assert (change.setting, change.applies) == ("server.load", "now")
        assert kept(daemon) == {"one": False, "two": True}
        directories.user_config.write_text("")
        daemon.reload()
        assert kept(daemon) == {"one": False, "two": False}
        list(daemon.client().load("two"))  # waits until it is loaded


def test_a_table_of_the_model_says_how_long_it_stays(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / "one")
    directories.config.mkdir()
    directories.user_config.write_text('[server]\nload = ["one"]\n[models.one]\nkeep_alive = "1h"\n')
    with running_daemon(directories, models=()) as daemon:
        assert kept(daemon) == {"one": False}


def test_a_model_that_does_not_exist_ends_the_start(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    with pytest.raises(LlmdError, match="nobody"), running_daemon(directories, models=("nobody",)):
        pass
