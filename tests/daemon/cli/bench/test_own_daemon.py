"""A temporary daemon stops with its measurement, and its failure is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llmd.api.errors import DaemonUnreachableError, NotFoundError
from llmd.cli.bench import own_daemon as module
from llmd.cli.bench.own_daemon import own_daemon
from llmd.client import find_daemon
from llmd.config import parse_address
from tests.serving.home import Home


@pytest.fixture
def at_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """This process and its children use that home."""
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    return home


def test_answers_while_the_block_lasts_and_leaves_nothing(at_home: Home) -> None:
    with own_daemon(["tiny", "--device", "reference"]) as base_url:
        address = parse_address(base_url)
        assert find_daemon([address]) == address
        assert at_home.json("ps", "--host", base_url)["models"][0]["name"] == "tiny"
    with pytest.raises(DaemonUnreachableError):
        find_daemon([address])
    assert not Path(base_url.removeprefix("unix:")).parent.exists()


def test_ends_with_the_error_of_its_block(at_home: Home) -> None:
    with pytest.raises(ZeroDivisionError), own_daemon([]) as base_url:
        raise ZeroDivisionError
    with pytest.raises(DaemonUnreachableError):
        find_daemon([parse_address(base_url)])


def test_a_daemon_that_cannot_start_leaves_its_last_words_and_its_exit_code(at_home: Home) -> None:
    with (
        pytest.raises(DaemonUnreachableError, match="there is no model 'absent'") as caught,
        own_daemon(["absent"]),
    ):
        pass
    assert caught.value.exit_code == NotFoundError.exit_code
    assert "llmd serve" in caught.value.hint


def test_a_daemon_that_does_not_end_is_killed(at_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    monkeypatch.setattr(module, "_COMMAND", (sys.executable, "-c", deaf))
    monkeypatch.setattr(module, "STOP_LIMIT_S", 0.1)
    with own_daemon([]) as base_url:
        assert base_url.startswith("unix:")
