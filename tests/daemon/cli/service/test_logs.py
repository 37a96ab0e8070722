from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.cli.conftest import Llmd
from tests.daemon.cli.service.conftest import Manager


def test_the_journal_of_the_installed_unit_is_shown(llmd: Llmd, manager: Manager, tmp_path: Path) -> None:
    program = manager.folder / "journalctl"
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    program.chmod(0o755)
    assert llmd("service", "install").code == 0
    done = llmd("service", "logs", "--level", "error", "-n", "7")
    assert done.code == 0
    assert {"--user-unit=llmd.service", "--priority=err", "--lines=7"} <= set(done.out.split())


def test_a_service_that_is_not_installed_has_no_log(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd.cli.service.systemd_service.SYSTEM_UNITS", tmp_path / "system")
    assert llmd("service", "logs").code == 3


def test_on_macos_the_file_of_the_agent_is_shown(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    log = next(iter(tmp_path.glob("state/llmd")), tmp_path / "state" / "llmd") / "daemon.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    assert llmd("service", "logs").out in {"a line\n", ""}
