"""A connection that fails is closed, and the reason is kept."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.client_connection import EXIT_TIMEOUT, Connection, connected, lost
from llmd.config import TcpAddress, UnixAddress


def test_connects_to_a_socket_and_to_a_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        for address in (TcpAddress("127.0.0.1", tcp.getsockname()[1]), UnixAddress(tmp_path / "s")):
            connected(address).close()
    with pytest.raises(OSError, match="No such file"):
        connected(UnixAddress(tmp_path / "nowhere"))


def test_a_time_limit_is_told_apart_from_a_loss(tmp_path: Path) -> None:
    address = UnixAddress(tmp_path / "s")
    assert lost(address, TimeoutError()).exit_code == EXIT_TIMEOUT
    assert "was lost: reset" in lost(address, ConnectionResetError("reset")).message


def test_an_unusable_file_of_certificates_closes_the_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = TcpAddress("127.0.0.1", server.getsockname()[1], tls=True)
        connection = Connection(address, 5, str(tmp_path / "nowhere"))
        with pytest.raises(ConfigError, match="nowhere cannot be used"):
            connection.connect()
        accepted = server.accept()[0]
        with accepted:
            assert accepted.recv(1) == b""
