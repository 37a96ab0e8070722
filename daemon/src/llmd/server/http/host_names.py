"""Host names and IP addresses as requests state them."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def host_name(host: str) -> str:
    """The name in ``HOST`` or ``HOST:PORT``, in small letters.

    The dot that ends a full name is dropped: ``localhost.`` is the same machine as ``localhost``.
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return host


def is_local_name(name: str) -> bool:
    """Whether a name always means this machine: browsers ask no DNS server for it."""
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def is_ip(name: str) -> bool:
    """Whether it is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether it is an IP address that only this machine can reach."""
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
