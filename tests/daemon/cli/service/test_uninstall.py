from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.cli.conftest import Llmd
from tests.daemon.cli.service.conftest import Manager


def test_what_was_installed_goes(llmd: Llmd, manager: Manager, tmp_path: Path) -> None:
    assert llmd("service", "install").code == 0
    done = llmd("service", "uninstall")
    folder = tmp_path / "config" / "systemd" / "user"
    assert (done.code, done.out) == (0, f"removed llmd.socket and llmd.service from {folder}\n")
    assert not folder.exists()
    assert llmd("service", "uninstall").code == 3


def test_on_macos_the_agent_is_ended_and_removed(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert llmd("service", "uninstall").code == 3
    assert llmd("service", "install").code == 0
    assert manager.calls
    assert llmd("service", "uninstall").code == 0
    assert [call for call in manager.calls if "bootout" in call]
    assert not (tmp_path / "Library" / "LaunchAgents" / "llmd.plist").exists()
