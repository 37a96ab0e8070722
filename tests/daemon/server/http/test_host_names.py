from __future__ import annotations

import pytest

from llmd.server.http.host_names import host_name, is_ip, is_local_name, is_loopback


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("LocalHost:8642", "localhost"),
        ("localhost.", "localhost"),
        ("localhost..", "localhost."),
        ("[::1]:8642", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("", ""),
        ("[", "["),
    ],
)
def test_name_has_no_port_no_capitals_and_no_dot_at_its_end(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize("name", ["localhost", "app.localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_local_names_mean_this_machine(name: str) -> None:
    assert is_local_name(name)


@pytest.mark.parametrize("name", ["", "notlocalhost", "localhost.example", "192.168.1.5", "0.0.0.0"])
def test_other_names_may_mean_another_machine(name: str) -> None:
    assert not is_local_name(name)


def test_loopback_is_known_with_a_zone_and_inside_ipv6() -> None:
    assert is_loopback("::1%lo")
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:192.168.1.5")


def test_addresses_are_told_from_names() -> None:
    assert is_ip("192.168.1.5")
    assert not is_ip("workstation")
