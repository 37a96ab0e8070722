from __future__ import annotations

import socket

import pytest

from llmd.api.errors import HubError
from llmd.registry.hub_client import check_public, guarded_client, is_public


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "fc00::1",
        "0.0.0.0",
        "localhost",
        "[::1]",
        "::ffff:127.0.0.1",
    ],
)
def test_addresses_of_this_machine_and_its_network_are_not_public(host: str) -> None:
    assert not is_public(host)
    with pytest.raises(HubError, match="which is not public"):
        check_public("https://hub.example", "https", host)


@pytest.mark.parametrize("host", ["1.1.1.1", "2606:4700:4700::1111"])
def test_addresses_of_the_internet_are(host: str) -> None:
    assert is_public(host)
    check_public("https://hub.example", "https", host)


def test_one_private_address_of_a_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in ("1.1.1.1", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: addresses)
    assert not is_public("rebound.example")


def test_a_name_that_only_a_proxy_knows_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert is_public("hub.example")


def test_a_public_hub_leads_from_https_to_https_alone() -> None:
    with pytest.raises(HubError, match=r"leads to http://1\.1"):
        check_public("https://hub.example", "http", "1.1.1.1")


def test_a_public_hub_cannot_make_this_machine_ask_its_neighbours() -> None:
    with guarded_client("https://1.1.1.1") as client, pytest.raises(HubError, match="not public"):
        client.get("http://127.0.0.1:1/secret")
