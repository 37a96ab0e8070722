from __future__ import annotations

import socket
from pathlib import Path

import pytest

from llmd.cli.plugins.running_daemons import RunningDaemons, is_on_this_machine, is_own, running_daemons
from llmd.config import TcpAddress, UnixAddress
from tests.daemon.cli.conftest import Llmd
from tests.serving.running import RunningDaemon


def test_only_addresses_of_this_machine_are_its_own() -> None:
    assert is_own(socket.AF_INET, ("127.0.0.2", 80))
    assert not is_own(socket.AF_INET, ("192.0.2.1", 80))  # kept free for documentation
    if socket.has_ipv6:
        assert not is_own(socket.AF_INET6, ("2001:db8::1", 80, 0, 0))


def test_a_daemon_is_on_this_machine_whatever_its_host_is_called() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert is_on_this_machine(TcpAddress("127.0.0.1", port))
        assert is_on_this_machine(TcpAddress("localhost", port))
    assert not is_on_this_machine(TcpAddress("127.0.0.1", port))
    assert is_on_this_machine(UnixAddress(Path("/nowhere")))


def test_the_daemon_that_a_setting_names_is_found(asked: Llmd, daemon: RunningDaemon) -> None:
    assert running_daemons() == RunningDaemons(UnixAddress(daemon.socket))


def test_settings_that_cannot_be_read_name_no_daemon(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_TIMEOUT_S", "soon")
    assert running_daemons() == RunningDaemons()


def test_the_reload_is_addressed_to_this_machine() -> None:
    here, elsewhere = UnixAddress(Path("/run/my llmd.sock")), TcpAddress("gpu")
    assert RunningDaemons(here).reload == "llmd reload"
    assert (
        RunningDaemons(here, elsewhere, "LLMD_HOST").reload == "llmd reload --host 'unix:/run/my llmd.sock'"
    )
