"""Behaviour specific to links within one process; tests/conformance/transports tests every transport."""

from __future__ import annotations

import pytest

from llmd.api import LinkError, LinkTimeoutError
from llmd.api.transport import send
from llmd_transport.local import MAX_WAITING_LINKS, LocalNetwork, llmd_transports


def test_a_name_is_free_again_once_its_listener_closed() -> None:
    network = LocalNetwork()
    network.listen("local://stage").close()
    listener = network.listen("local://stage")
    assert listener.address == "local://stage"


def test_closing_an_old_listener_does_not_free_the_name_of_a_new_one() -> None:
    network = LocalNetwork()
    old = network.listen("local://stage")
    old.close()
    network.listen("local://stage")
    old.close()
    network.connect("local://stage", 0).close()


def test_two_hosts_of_one_process_do_not_meet() -> None:
    (one,), (other,) = llmd_transports(), llmd_transports()
    one.listen("local://stage")
    with pytest.raises(LinkError, match="nothing listens at local://stage"):
        other.connect("local://stage", 0)


def test_links_that_nobody_accepts_are_bounded() -> None:
    network = LocalNetwork()
    network.listen("local://stage")
    for _ in range(MAX_WAITING_LINKS):
        network.connect("local://stage", 0)
    with pytest.raises(LinkTimeoutError):
        network.connect("local://stage", 0)


def test_a_link_works_before_it_is_accepted() -> None:
    network = LocalNetwork()
    listener = network.listen("local://stage")
    send(network.connect("local://stage", 0), [b"early"], 0)
    assert bytes(listener.accept(0).receive(0).data) == b"early"


def test_the_receiver_reads_the_buffer_that_the_sender_wrote() -> None:
    network = LocalNetwork()
    listener = network.listen("local://stage")
    near = network.connect("local://stage", 0)
    written = near.reserve(3, 0)
    near.commit(3)
    assert listener.accept(0).receive(0).data.obj is written.obj
