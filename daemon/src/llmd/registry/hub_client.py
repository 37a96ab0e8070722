"""The HTTP client that hubs are asked with. It does not follow a hub into this machine's own network.

A redirect from a public hub may lead to public addresses alone, and from https to https alone: what a hub answers must
not make this machine ask its neighbours (CVE-2026-5530).
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING

from llmd.api.errors import HubError

if TYPE_CHECKING:
    from huggingface_hub.utils import httpx

CONNECT_S = 10.0
SILENCE_S = 30.0
"""A hub that sends nothing for so long is asked anew."""


def guarded_client(endpoint: str) -> httpx.Client:
    """A client for one hub; a private one, such as a mirror in one's own network, may lead anywhere."""
    from huggingface_hub.utils import httpx

    public = is_public(httpx.URL(endpoint).host)

    def guard(request: httpx.Request) -> None:
        if public:
            check_public(endpoint, request.url.scheme, request.url.host)

    return httpx.Client(
        event_hooks={"request": [guard]},
        follow_redirects=True,
        timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
    )


def check_public(endpoint: str, scheme: str, host: str) -> None:
    """Raises `HubError` where a public hub leads somewhere else than to a public address, safely."""
    if scheme != "https" or not is_public(host):
        raise HubError(
            f"{endpoint} leads to {scheme}://{host}, which is not public",
            hint="a public hub may not make this machine ask its own network",
        )


def is_public(host: str) -> bool:
    """Whether every address of a host is one of the internet. Names that only a proxy can resolve are."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global for *_, address in found)
