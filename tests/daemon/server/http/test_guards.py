from __future__ import annotations

import pytest

from llmd.server.errors import ForbiddenError
from llmd.server.http.guards import Guards, Peer, cors_headers, preflight_headers
from llmd.server.http.origins import allowed_origins

LOOPBACK = Peer("127.0.0.1", "127.0.0.1")
ALLOWED = allowed_origins(["chrome-extension://abc"], "config.toml")
GUARDS = Guards("workstation", frozenset({"llm.example"}), ALLOWED)
PEERS = (LOOPBACK, Peer(None, None), Peer("192.168.1.5", "192.168.1.9"))


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
        "localhost.",
        "localhost.:8642",
        "app.localhost.",
        "workstation.",
        "llm.example.:8642",
    ],
)
def test_names_of_this_machine_pass(host: str) -> None:
    GUARDS.check(LOOPBACK, {"Host": host})


LAN = Peer("192.168.1.5", "192.168.1.9")


@pytest.mark.parametrize(
    ("host", "origin", "encrypted"),
    [
        ("192.168.1.5:8642", "http://192.168.1.5:8642", False),
        ("192.168.1.5:8642", "https://192.168.1.5:8642", True),
        ("[fd00::5]:8642", "http://[fd00::5]:8642", False),
        ("workstation:8642", "http://workstation:8642", False),
        ("llm.example", "http://llm.example", False),
        ("llm.example", "https://llm.example", True),
    ],
)
def test_the_daemons_own_page_may_ask_it(host: str, origin: str, *, encrypted: bool) -> None:
    peer = Peer(LAN.local, LAN.remote, encrypted)
    GUARDS.check(peer, {"Host": host, "Origin": origin})


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("192.168.1.5:8642", "http://192.168.1.5:3000"),
        ("192.168.1.5:8642", "https://192.168.1.5:8642"),
        ("192.168.1.5:8642", "http://192.168.1.6:8642"),
        ("evil.example:8642", "http://evil.example:8642"),
        ("", "http://"),
        ("192.168.1.5:8642", "null"),
    ],
)
def test_other_pages_and_names_that_anyone_could_set_are_refused(host: str, origin: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        GUARDS.check(LAN, {"Host": host, "Origin": origin})
    assert caught.value.code == "origin_not_allowed"


@pytest.mark.parametrize("host", ["workstation", "WORKSTATION:8642", "llm.example", "LLM.Example"])
def test_case_of_host_names_does_not_matter(host: str) -> None:
    Guards("WorkStation", frozenset({"LLM.example"})).check(LOOPBACK, {"Host": host})


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8642",
        "evil.example.",
        "localhost.evil.example",
        "localhost..",
        "notlocalhost",
    ],
)
def test_foreign_host_names_are_refused_and_the_flag_is_named(host: str) -> None:
    with pytest.raises(ForbiddenError, match="not a name of this machine") as caught:
        GUARDS.check(LOOPBACK, {"Host": host})
    assert caught.value.code == "host_not_allowed"
    assert "--allow-host" in caught.value.hint


@pytest.mark.parametrize("peer", [Peer(None, None), Peer("192.168.1.5", "192.168.1.9")])
def test_host_names_do_not_matter_on_the_unix_socket_and_beyond_loopback(peer: Peer) -> None:
    GUARDS.check(peer, {"Host": "evil.example"})


@pytest.mark.parametrize("origin", ["http://localhost:3000", "app://obsidian.md", "chrome-extension://abc"])
def test_pages_and_apps_of_this_machine_and_allowed_ones_may_ask(origin: str) -> None:
    for peer in PEERS:
        GUARDS.check(peer, {"Host": "localhost", "Origin": origin})


@pytest.mark.parametrize("origin", ["https://evil.example", "chrome-extension://xyz"])
def test_foreign_pages_are_refused_on_every_listener_and_the_flag_is_named(origin: str) -> None:
    for peer in PEERS:
        with pytest.raises(ForbiddenError) as caught:
            GUARDS.check(peer, {"Host": "localhost", "Origin": origin})
        assert caught.value.code == "origin_not_allowed"
        assert f"--allow-origin {origin}" in caught.value.hint


def test_page_that_was_opened_as_a_file_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(ForbiddenError, match="pages of null") as caught:
        GUARDS.check(LOOPBACK, {"Host": "localhost", "Origin": "null"})
    assert "http://localhost" in caught.value.hint
    assert "--allow-origin" not in caught.value.hint


def test_no_flag_is_suggested_for_what_is_no_origin() -> None:
    with pytest.raises(ForbiddenError) as caught:
        GUARDS.check(LOOPBACK, {"Host": "localhost", "Origin": "http://["})
    assert "--allow-origin" not in caught.value.hint


def test_foreign_host_names_are_refused_where_every_origin_is_allowed() -> None:
    guards = Guards("workstation", allow_origin=allowed_origins(["*"], "config.toml"))
    guards.check(LOOPBACK, {"Host": "localhost", "Origin": "https://evil.example"})
    with pytest.raises(ForbiddenError, match="not a name of this machine"):
        guards.check(LOOPBACK, {"Host": "evil.example", "Origin": "https://evil.example"})


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
    assert cors_headers("http://localhost:1")["Vary"] == "Origin"


def test_browser_that_asks_first_gets_what_it_asked_for() -> None:
    asked = {"Access-Control-Request-Headers": "x-stainless-os"}
    assert preflight_headers(asked)["Access-Control-Allow-Headers"] == "x-stainless-os"
    assert "Access-Control-Allow-Private-Network" not in preflight_headers(asked)
    private = {"Access-Control-Request-Private-Network": "true"}
    assert preflight_headers(private)["Access-Control-Allow-Private-Network"] == "true"
