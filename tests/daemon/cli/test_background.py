"""A background daemon is ready when it has printed its line, and its failure is reported."""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, DaemonUnreachableError, LlmdError, NotFoundError
from llmd.cli.background import start_daemon, told_failure
from llmd.config.directories import LOG_NAME, Directories
from tests.serving.home import Home


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directories:
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path))
    return Directories.of(os.environ)


def test_the_error_of_a_daemon_that_cannot_start_is_the_error_and_is_logged_with_its_time(
    directories: Directories,
) -> None:
    with pytest.raises(LlmdError) as caught:
        start_daemon(directories, ["serve", "--slots", "0"])
    assert caught.value.message == "engine.slots from --slots is 0, expected an integer of at least 1"
    assert caught.value.hint == "correct it there, or remove it to use the default"
    assert caught.value.exit_code == ConfigError.exit_code
    with pytest.raises(LlmdError, match="there is no model 'nobody'") as missing:
        start_daemon(directories, ["serve", "nobody"])
    assert missing.value.exit_code == NotFoundError.exit_code
    lines = directories.log.read_text().splitlines()
    assert [re.sub(r"^\S+", "", line).split(" reason=")[0] for line in lines] == [" error not_started"] * 2
    assert all(datetime.fromisoformat(line.split(" ")[0]) for line in lines)


def test_a_daemon_that_ends_without_an_error_of_its_own_leaves_its_last_words(
    directories: Directories,
) -> None:
    with pytest.raises(DaemonUnreachableError, match="--nothing") as caught:
        start_daemon(directories, ["serve", "--nothing"])
    assert caught.value.exit_code == 2
    assert str(directories.log) in caught.value.hint


@pytest.mark.parametrize("line", ["", "llmd 1.0 listens on unix:/x"])
def test_the_line_of_a_daemon_that_is_ready_tells_no_error(line: str) -> None:
    assert told_failure(line) is None


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
