from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Address, TcpAddress, UnixAddress, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", TcpAddress("127.0.0.1", 80)),
        ("localhost", TcpAddress("localhost", 8642)),
        ("18501", TcpAddress("127.0.0.1", 18501)),
        ("::1", TcpAddress("::1", 8642)),
        ("http://box:0/", TcpAddress("box", 0)),
        ("https://box", TcpAddress("box", 8642, tls=True)),
        ("https://[::1]:9", TcpAddress("::1", 9, tls=True)),
        ("[::1]:9", TcpAddress("::1", 9)),
        ("unix:/run/x.sock", UnixAddress(Path("/run/x.sock"))),
        ("unix:///run/x.sock", UnixAddress(Path("/run/x.sock"))),
    ],
)
def test_reads_every_form(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["", ":80", "70000", "box:port", "box:70000", "ftp://box", "http://box/path", "http://me@box", "unix:"],
)
def test_refuses_what_is_no_address_and_names_its_origin(text: str) -> None:
    with pytest.raises(ConfigError, match="LLMD_HOST is"):
        parse_address(text, "LLMD_HOST")


def test_a_port_that_is_no_number_is_said_plainly() -> None:
    with pytest.raises(ConfigError, match="--addr is 'box:port': its port is not a number from 0 to 65535"):
        parse_address("box:port", "--addr")


def test_relative_socket_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_address("unix:x.sock") == UnixAddress(tmp_path / "x.sock")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("box", False),
    ],
)
def test_knows_loopback(host: str, *, loopback: bool) -> None:
    assert TcpAddress(host).is_loopback is loopback
