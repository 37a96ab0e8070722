from __future__ import annotations

import socket
from pathlib import Path

import pytest

from llmd.api.errors import DaemonUnreachableError
from llmd.config import UnixAddress
from llmd_tui.daemon.starting import reach
from tests.serving.home import Home


def test_a_daemon_that_answers_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "llmd.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        reach([UnixAddress(path)], start=True)
    assert capfd.readouterr() == ("", "")


def test_none_is_started_if_none_may_be(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnreachableError, match="no daemon answers"):
        reach([UnixAddress(tmp_path / "llmd.sock")], start=False)


def test_a_daemon_is_started_in_the_background(
    home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    try:
        reach([UnixAddress(home.socket)], start=True)
        assert "it goes on after you leave" in capfd.readouterr().err
        assert home.json("ps")["models"] == []
    finally:
        home.llmd("stop", "--daemon")


def test_a_daemon_that_cannot_start_says_why(
    home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LLMD_SLOTS", "many")
    with pytest.raises(DaemonUnreachableError, match="LLMD_SLOTS"):
        reach([UnixAddress(home.socket)], start=True)
