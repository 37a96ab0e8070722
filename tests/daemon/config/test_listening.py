"""The user's socket stays open when a daemon is given TCP addresses, unless it is switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Address, Directories, Settings, TcpAddress, UnixAddress, load_settings
from llmd.config.addresses import DEFAULT_TCP
from llmd.config.listening import added_socket, listening_addresses
from tests.serving.running import directories_below

TCP = TcpAddress("127.0.0.1", 1)


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return directories_below(tmp_path)


def given(directories: Directories, **flags: Any) -> Settings:
    return load_settings(flags, environ={}, directories=directories)


def test_listens_on_the_users_socket_and_loopback_unless_told_otherwise(directories: Directories) -> None:
    assert listening_addresses(given(directories)) == (UnixAddress(directories.user_socket), DEFAULT_TCP)


def test_tcp_addresses_are_added_to_the_users_socket(directories: Directories) -> None:
    own = UnixAddress(directories.user_socket)
    settings = given(directories, addr=["127.0.0.1:1"])
    assert listening_addresses(settings) == (own, TCP)
    assert added_socket(settings) == own


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"addr": ["127.0.0.1:1"], "user_socket": False}, (TCP,)),
        ({"addr": ["127.0.0.1:1", "unix:/x"]}, (TCP, UnixAddress(Path("/x")))),
        ({"addr": ["unix:/x"]}, (UnixAddress(Path("/x")),)),
    ],
)
def test_the_users_socket_can_be_switched_off_or_replaced(
    directories: Directories, flags: dict[str, Any], expected: tuple[Address, ...]
) -> None:
    settings = given(directories, **flags)
    assert listening_addresses(settings) == expected
    assert added_socket(settings) is None


def test_an_address_of_no_known_form_is_refused_with_its_origin(directories: Directories) -> None:
    with pytest.raises(ConfigError, match="addr from --addr"):
        listening_addresses(given(directories, addr=["ftp://box"]))
