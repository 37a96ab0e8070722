from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.client_connection import connected
from llmd.config import TcpAddress, UnixAddress
from llmd.server.http.listeners import check_exposure, listen


def test_socket_is_its_owners_alone_from_its_first_moment(tmp_path: Path) -> None:
    path = tmp_path / "run" / "llmd.sock"
    umask = os.umask(0)
    try:
        with listen([UnixAddress(path)], user_folder=path.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert os.umask(0) == 0
    finally:
        os.umask(umask)
    assert not path.exists()


def test_a_folder_that_does_not_exist_is_said_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "llmd.sock"
    with (
        pytest.raises(ConfigError, match=f"the folder {path.parent} does not exist") as caught,
        listen([UnixAddress(path)], user_folder=tmp_path / "run"),
    ):
        pass
    assert f"mkdir -p {path.parent}" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listen([UnixAddress(path)]), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_socket_that_answers_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    with listen([UnixAddress(path)]):
        with (
            pytest.raises(ConfigError, match="a daemon is already listening there"),
            listen([UnixAddress(path)]),
        ):
            pass
        assert path.exists()


def test_socket_of_a_daemon_that_took_the_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    with contextlib.ExitStack() as second:
        with listen([UnixAddress(path)]) as (first,):
            first.socket.close()  # the server does so at its end, a moment before the file is removed
            second.enter_context(listen([UnixAddress(path)]))
        assert path.exists()


def test_file_that_is_no_socket_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="not a socket"), listen([UnixAddress(path)]):
        pass
    assert path.read_text() == "mine"


def test_tells_the_port_that_was_free() -> None:
    with listen([TcpAddress("127.0.0.1", 0)]) as (listener,):
        assert isinstance(listener.address, TcpAddress)
        assert listener.address.port > 0


def test_port_in_use_is_an_error_that_frees_what_was_bound_before(tmp_path: Path) -> None:
    path = tmp_path / "llmd.sock"
    with (
        listen([TcpAddress("127.0.0.1", 0)]) as (taken,),
        pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1") as caught,
        listen([UnixAddress(path), taken.address]),
    ):
        pass
    assert "llmd ps" in caught.value.hint
    assert not path.exists()


def test_names_of_several_addresses_are_served_where_this_machine_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
    elsewhere = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: [elsewhere, here])
        with listen([TcpAddress("box", 0)]) as (listener,):
            assert isinstance(listener.address, TcpAddress)
            assert listener.address.host == "127.0.0.1"
        patch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: [elsewhere])
        with pytest.raises(ConfigError, match="cannot listen on box"), listen([TcpAddress("box", 0)]):
            pass


def test_host_that_cannot_be_found_is_an_error() -> None:
    with (
        pytest.raises(ConfigError, match="cannot listen on"),
        listen([TcpAddress("no.such.host.invalid", 1)]),
    ):
        pass


def test_path_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too long"), listen([UnixAddress(tmp_path / ("x" * 200))]):
        pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.example"])
def test_network_is_served_only_on_request(host: str) -> None:
    with pytest.raises(ConfigError, match="other machines") as caught:
        check_exposure([TcpAddress(host)], protected=False)
    assert all(fix in caught.value.hint for fix in ("llmd keys add", "--no-auth"))
    check_exposure([TcpAddress(host)], protected=True)


def test_loopback_and_sockets_need_no_key(tmp_path: Path) -> None:
    check_exposure([TcpAddress("127.0.0.1"), TcpAddress("::1"), UnixAddress(tmp_path)], protected=False)


def test_a_dispensable_socket_of_another_daemon_is_left_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    taken, tcp = UnixAddress(tmp_path / "llmd.sock"), TcpAddress("127.0.0.1", 0)
    with listen([taken]):
        with listen([taken, tcp], dispensable=taken) as (only,):
            assert isinstance(only.address, TcpAddress)
        assert "a daemon is already listening" in caplog.records[0].__dict__["reason"]
        connected(taken).close()
    with listen([taken, tcp], dispensable=taken) as opened:
        assert len(opened) == 2
