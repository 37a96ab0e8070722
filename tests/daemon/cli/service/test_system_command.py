from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, LlmdError
from llmd.cli.service.system_command import check_systemd_runs, run, succeeds, systemd_version
from tests.daemon.cli.service.conftest import Manager


def test_a_program_that_is_missing_and_one_that_fails_are_named(manager: Manager) -> None:
    with pytest.raises(ConfigError, match="no-such-program is not installed"):
        run(("no-such-program",))
    manager.refuse("enable")
    with pytest.raises(
        LlmdError, match=r"`systemctl enable it` failed with 1: Failed to do that\."
    ) as failed:
        run(("systemctl", "enable", "it"), "do this")
    assert failed.value.hint == "do this"
    assert run(("systemctl", "disable", "it")) == ""
    assert (succeeds(("systemctl", "enable")), succeeds(("systemctl", "disable"))) == (False, True)


def test_the_version_is_a_number(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    assert systemd_version() == 255
    monkeypatch.setenv("PATH", "/nowhere")
    assert systemd_version() == 0


def test_systemd_that_is_installed_need_not_run(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_systemd_runs()
    monkeypatch.setattr("llmd.cli.service.system_command.BOOTED", tmp_path / "none")
    with pytest.raises(ConfigError, match="systemd is not running"):
        check_systemd_runs()
