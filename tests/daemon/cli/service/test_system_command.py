from __future__ import annotations

import pytest

from llmd.api.errors import ConfigError, LlmdError
from llmd.cli.service.system_command import run, succeeds, systemd_version
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
