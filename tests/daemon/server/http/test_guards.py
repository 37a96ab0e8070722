from __future__ import annotations

import pytest

from llmd.server.errors import ForbiddenError
from llmd.server.http.guards import Guards, Peer, cors_headers, preflight_headers

LOOPBACK = Peer("127.0.0.1", "127.0.0.1")
GUARDS = Guards("workstation", frozenset({"llm.example"}), frozenset({"chrome-extension://abc"}))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8642",
        "[::1]:8642",
        "192.168.1.5",
        "localhost",
        "localhost:1",
        "app.localhost",
        "workstation:8642",
        "llm.example",
        "",
    ],
)
def test_names_of_this_machine_pass(host: str) -> None:
    GUARDS.check(LOOPBACK, {"Host": host})


@pytest.mark.parametrize("host", ["workstation", "WORKSTATION:8642", "llm.example", "LLM.Example"])
def test_case_of_host_names_does_not_matter(host: str) -> None:
    Guards("WorkStation", frozenset({"LLM.example"})).check(LOOPBACK, {"Host": host})


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8642", "localhost.evil.example", "notlocalhost"]
)
def test_foreign_host_names_are_refused_and_the_flag_is_named(host: str) -> None:
    with pytest.raises(ForbiddenError, match="not one of this machine") as caught:
        GUARDS.check(LOOPBACK, {"Host": host})
    assert caught.value.code == "host_not_allowed"
    assert "--allow-host" in caught.value.hint


@pytest.mark.parametrize("peer", [Peer(None, None), Peer("192.168.1.5", "192.168.1.9")])
def test_host_names_do_not_matter_on_the_unix_socket_and_beyond_loopback(peer: Peer) -> None:
    GUARDS.check(peer, {"Host": "evil.example"})


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "chrome-extension://abc"]
)
def test_pages_of_this_machine_and_named_ones_may_ask(origin: str) -> None:
    GUARDS.check(LOOPBACK, {"Host": "localhost", "Origin": origin})


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "chrome-extension://xyz", "http://localhost.evil.example", "http://["],
)
def test_foreign_pages_are_refused_on_every_listener(origin: str) -> None:
    for peer in (LOOPBACK, Peer(None, None), Peer("192.168.1.5", "192.168.1.9")):
        with pytest.raises(ForbiddenError) as caught:
            GUARDS.check(peer, {"Host": "localhost", "Origin": origin})
        assert caught.value.code == "origin_not_allowed"
        assert f"--allow-origin {origin}" in caught.value.hint


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (Peer(None, None), True),
        (LOOPBACK, True),
        (Peer("::1", "::1"), True),
        (Peer("::", "::ffff:127.0.0.1"), True),
        (Peer("192.168.1.5", "192.168.1.9"), False),
    ],
)
def test_knows_clients_of_this_machine(peer: Peer, *, local: bool) -> None:
    assert peer.is_this_machine is local


def test_cross_origin_headers_name_one_origin_and_never_all() -> None:
    assert cors_headers("http://localhost:1")["Access-Control-Allow-Origin"] == "http://localhost:1"
    assert preflight_headers("x-stainless-os")["Access-Control-Allow-Headers"] == "x-stainless-os"
