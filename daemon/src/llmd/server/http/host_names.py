"""Host names and IP addresses in requests."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def host_name(host: str) -> str:
    """Return the lower-case name in ``HOST`` or ``HOST:PORT``.

    The final dot of a fully qualified name is dropped: ``localhost.`` is the same machine as
    ``localhost``.
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return host


def is_local_name(name: str) -> bool:
    """Whether a name always means this machine: browsers resolve it without DNS."""
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether it is a loopback address."""
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
