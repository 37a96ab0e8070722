from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Address, TcpAddress, UnixAddress
from llmd.config.service_manager import PassedSocket
from llmd.server.http.passed_sockets import own_addresses, passed_listeners


def test_addresses_are_those_of_the_sockets_and_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))
        unix.listen()
        numbers = [os.dup(sock.fileno()) for sock in (tcp, unix)]
        listeners = passed_listeners([PassedSocket(number, "") for number in numbers], [])
        port = tcp.getsockname()[1]
        assert [one.address for one in listeners] == [TcpAddress("127.0.0.1", port), UnixAddress(path)]
        assert not any(os.get_inheritable(number) for number in numbers)
        for listener in listeners:
            listener.close()
        assert path.exists()
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.parametrize(("name", "configured_port_is_tls"), [("https", False), ("", True)])
def test_a_name_or_a_configured_address_encrypts_a_socket(*, name: str, configured_port_is_tls: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        port = tcp.getsockname()[1]
        configured = [TcpAddress("0.0.0.0", port, tls=configured_port_is_tls)]
        (listener,) = passed_listeners([PassedSocket(os.dup(tcp.fileno()), name)], configured)
        assert listener.address == TcpAddress("127.0.0.1", port, tls=True)
        listener.close()


def test_the_daemon_opens_the_kinds_that_were_not_passed(tmp_path: Path) -> None:
    configured: list[Address] = [
        UnixAddress(tmp_path / "a"),
        TcpAddress("127.0.0.1", 1),
        TcpAddress("::1", 2),
    ]
    assert own_addresses(configured, []) == configured
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        listeners = passed_listeners([PassedSocket(os.dup(tcp.fileno()), "")], [])
        assert own_addresses(configured, listeners) == configured[:1]
        listeners[0].close()


def test_what_is_no_listening_socket_is_refused(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_INET) as idle,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        (tmp_path / "file").open("wb") as file,
    ):
        for sock in (idle, datagrams, file):
            number = os.dup(sock.fileno())
            with pytest.raises(ConfigError, match=f"passed descriptor {number} "):
                passed_listeners([PassedSocket(number, "")], [])
