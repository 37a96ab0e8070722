"""Texts of units; systemd itself reads them where it is installed."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.cli.service.launcher import launcher
from llmd.cli.service.units import (
    SERVICE,
    SOCKET,
    ServicePlan,
    checked_models,
    quoted,
    service_unit,
    socket_unit,
    start_command,
    user_declaration,
)
from llmd.config import TcpAddress, UnixAddress

ADDRESSES = (UnixAddress(Path("/run/user/7/llmd/llmd.sock")), TcpAddress("127.0.0.1"))


def plan(**changes: Any) -> ServicePlan:
    return ServicePlan(**{"command": ("/opt/llmd/bin/llmd",), "addresses": ADDRESSES, **changes})


def section(text: str, name: str) -> dict[str, str]:
    """Read a unit; of a key that is repeated, the last value."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
    parser.read_string(text)
    return dict(parser[name])


def test_sockets_are_those_of_the_settings_and_the_owner_alone_may_use_the_file() -> None:
    text = socket_unit(plan())
    assert "ListenStream=/run/user/7/llmd/llmd.sock\nListenStream=127.0.0.1:8642\n" in text
    assert section(text, "Socket")["SocketMode"] == "0600"
    shared = section(socket_unit(plan(is_system=True)), "Socket")
    assert (shared["SocketMode"], shared["SocketGroup"]) == ("0660", "llmd")
    v6 = socket_unit(plan(addresses=(TcpAddress("::1", 9), TcpAddress("localhost", 8, tls=True))))
    assert "ListenStream=[::1]:9\nListenStream=127.0.0.1:8\n" in v6


@pytest.mark.parametrize("address", [TcpAddress("box.example", 80), TcpAddress("127.0.0.1", 0)])
def test_addresses_that_systemd_cannot_open_are_refused(address: TcpAddress) -> None:
    with pytest.raises(ConfigError, match="systemd cannot listen on"):
        socket_unit(plan(addresses=(address,)))


def test_the_kind_of_reload_is_one_that_the_version_knows() -> None:
    old, new = (section(service_unit(plan(systemd_version=number)), "Service") for number in (252, 253))
    assert (old["Type"], old["ExecReload"]) == ("notify", "/opt/llmd/bin/llmd reload --timeout 60")
    assert (new["Type"], "ExecReload" in new) == ("notify-reload", False)


def test_a_service_restarts_after_failures_and_outlives_its_engines() -> None:
    service = section(service_unit(plan(drain_s=50.0, engine_timeout_s=100.0)), "Service")
    assert (service["Restart"], service["OOMPolicy"], service["KillMode"]) == (
        "on-failure",
        "continue",
        "mixed",
    )
    assert service["TimeoutStopSec"] == "60"
    assert service["WatchdogSec"] == "400"


def test_the_sandbox_is_that_of_the_system_service_alone() -> None:
    own = section(service_unit(plan(environment={"HF_HOME": '/a "b" %'})), "Service")
    shared = section(service_unit(plan(is_system=True, groups=("video",))), "Service")
    assert own["NoNewPrivileges"] == shared["NoNewPrivileges"] == "yes"
    assert not {"ProtectSystem", "PrivateTmp", "User", "DevicePolicy"} & own.keys()
    assert (shared["ProtectSystem"], shared["User"], shared["StateDirectory"]) == ("strict", "llmd", "llmd")
    assert shared["SupplementaryGroups"] == "video"
    assert "MemoryDenyWriteExecute" not in shared
    assert own["Environment"] == '"HF_HOME=/a \\"b\\" %%"'
    assert user_declaration().startswith("u llmd - ")


def test_a_daemon_with_models_starts_with_the_machine_and_others_end_when_idle() -> None:
    assert start_command(plan()) == ["/opt/llmd/bin/llmd", "-v", "serve", "--exit-idle-s", "1800"]
    named = plan(models=("guide",), config_file=Path("/etc/my llmd.toml"))
    assert start_command(named)[1:] == ["-v", "serve", "--config", "/etc/my llmd.toml", "--", "guide"]
    exec_start = section(service_unit(named), "Service")["ExecStart"]
    assert shlex.split(exec_start) == start_command(named)


def test_words_of_a_command_are_quoted_for_systemd() -> None:
    assert quoted("/opt/a-b/llmd") == "/opt/a-b/llmd"
    assert quoted("a b") == '"a b"'
    assert quoted('100% "$HOME"') == '"100%% \\"$$HOME\\""'


def test_paths_of_models_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert checked_models(["guide", "./mine", "org/name"]) == ("guide", str(tmp_path / "mine"), "org/name")
    with pytest.raises(ConfigError):
        checked_models(["two\nlines"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("is_system", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_systemd_finds_no_fault_in_the_units(tmp_path: Path, *, is_system: bool) -> None:
    found = plan(
        command=launcher(), is_system=is_system, models=("a b",), groups=("root",), environment={"A": "b c"}
    )
    (tmp_path / SERVICE).write_text(service_unit(found))
    (tmp_path / SOCKET).write_text(socket_unit(found))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / SERVICE), str(tmp_path / SOCKET)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_ours = [line for line in done.stderr.splitlines() if "llmd" in line]
    assert (done.returncode, about_ours) == (0, [])
