"""A background daemon is ready when it has printed its line, and its failure is reported."""

from __future__ import annotations

import stat
from importlib.metadata import version
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.cli.background import start_daemon
from llmd.config.directories import LOG_NAME
from tests.serving.home import Home
from tests.serving.running import directories_below


def test_a_daemon_that_cannot_start_leaves_its_last_words_and_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    directories = directories_below(tmp_path)
    with pytest.raises(DaemonUnreachableError, match="expected an integer of at least 1") as caught:
        start_daemon(directories, ["serve", "--slots", "0"])
    assert caught.value.exit_code == ConfigError.exit_code
    assert str(directories.state / LOG_NAME) in caught.value.hint
    with pytest.raises(DaemonUnreachableError, match="--nothing"):
        start_daemon(directories, ["serve", "--nothing"])


def test_detached_it_outlives_the_command_and_gets_every_flag(home: Home) -> None:
    flags = ("--max-ctx", "64", "--alias", "other", "--device", "reference")
    done = home.llmd("-v", "serve", "tiny", "--detach", *flags)
    assert done.returncode == 0, done.stderr
    try:
        assert done.stdout.endswith(f"listens on unix:{home.socket}; models: tiny, other\n")
        row = home.loaded()
        assert (row["context_len"], row["aliases"]) == (64, ["other"])
        assert row["loaded"]["stages"][0]["device"] == "reference"
        log = (home.state / LOG_NAME).read_text()
        assert stat.S_IMODE((home.state / LOG_NAME).stat().st_mode) == 0o600
        assert f" info serving version={version('llmd-daemon')} " in log
        assert f"addresses=unix:{home.socket} models=tiny,other\n" in log
        assert " info model_loaded model=tiny " in log
    finally:
        assert home.llmd("stop", "--daemon").returncode == 0
