"""Addresses of this machine: who may connect, and what becomes of links that nobody accepts."""

from __future__ import annotations

import os
import socket
from contextlib import closing

import pytest

from llmd.api import LinkError, LinkTimeoutError
from llmd.api.transport import send
from llmd_transport.local_addresses import GREETING, MAX_WAITING_LINKS, PREFIX, connect, listen


def test_a_name_is_free_again_once_its_listener_closed() -> None:
    listen("local://test-stage").close()
    with closing(listen("local://test-stage")) as listener:
        assert listener.address == "local://test-stage"


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(LinkError, match="cannot listen at") as caught:
        listen("local://" + 200 * "x")
    assert caught.value.hint


def test_links_that_nobody_accepts_are_bounded() -> None:
    with closing(listen("local://")) as listener:
        links = [connect(listener.address, 0.0) for _ in range(MAX_WAITING_LINKS + 1)]  # one more, in Linux
        with pytest.raises(LinkTimeoutError):
            connect(listener.address, 0.0)
        for link in links:
            link.close()


def test_a_link_works_before_it_is_accepted() -> None:
    with closing(listen("local://")) as listener, closing(connect(listener.address, 5.0)) as near:
        send(near, [b"early"], 0.0)
        with closing(listener.accept(5.0)) as far, far.receive(0.0) as data:
            assert bytes(data) == b"early"


def test_the_receiver_reads_the_memory_that_the_sender_wrote() -> None:
    with closing(listen("local://")) as listener, closing(connect(listener.address, 5.0)) as near:
        written = near.reserve(3, 0.0)
        near.commit(3)
        with closing(listener.accept(5.0)) as far, far.receive(0.0) as data:
            written[:] = b"new"
            assert bytes(data) == b"new"


def test_a_stranger_is_dropped_and_the_next_peer_is_accepted() -> None:
    with closing(listen("local://")) as listener:
        name = PREFIX + listener.address.removeprefix("local://")
        for said in (GREETING, b"something else"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                stranger.connect(name)
                socket.send_fds(stranger, [said], [stranger.fileno()])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(name)
        with closing(connect(listener.address, 5.0)), closing(listener.accept(5.0)):
            pass


def test_processes_of_another_user_are_no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(listen("local://")) as listener, closing(connect(listener.address, 5.0)):
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(LinkError, match="another user listens"):
            connect(listener.address, 5.0)
        with pytest.raises(LinkTimeoutError):
            listener.accept(0.05)
