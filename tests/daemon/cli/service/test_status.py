from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.daemon.cli.conftest import Llmd
from tests.daemon.cli.service.conftest import Manager

SHOWN = """\
Id=llmd.socket
ActiveState=active
SubState=listening
UnitFileState=enabled

MainPID=0
NRestarts=0
StatusText=
Id=llmd.service
ActiveState=inactive
SubState=dead
UnitFileState=disabled
"""


def test_units_are_listed_with_their_states(llmd: Llmd, manager: Manager) -> None:
    assert llmd("service", "install").code == 0
    manager.show(SHOWN)
    rows = json.loads(llmd("service", "status", "--json").out)["units"]
    assert [(row["unit"], row["state"], row["pid"]) for row in rows] == [
        ("llmd.socket", "active (listening)", None),
        ("llmd.service", "inactive (dead)", None),
    ]


def test_a_service_that_is_not_installed_ends_with_three(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd.cli.service.systemd_service.SYSTEM_UNITS", tmp_path / "system")
    assert llmd("service", "status").code == 3


def test_on_macos_it_says_whether_the_agent_is_loaded(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert llmd("service", "status").code == 3
    assert llmd("service", "install").code == 0
    assert "loaded" in llmd("service", "status").out
    manager.refuse("print")
    assert "not loaded" in llmd("service", "status").out
