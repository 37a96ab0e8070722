"""The HTTP client for hubs. It does not follow redirects from a public hub into the local network.

A public hub may redirect to public addresses only, and only to https: a hub's response must not make this
machine send requests to its own network (CVE-2026-5530).
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
"""Read timeout: a hub that sends nothing for this long is asked again."""


def guarded_client(endpoint: str) -> httpx.Client:
    """Return a client for one hub. A private hub, such as a local mirror, may redirect anywhere."""
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
    """Raise `HubError` unless a public hub redirects to a public address over https."""
    if scheme != "https" or not is_public(host):
        raise HubError(
            f"{endpoint} leads to {scheme}://{host}, which is not public",
            hint="a public hub may redirect to public https addresses only: check the address of the hub",
        )


def is_public(host: str) -> bool:
    """Whether all addresses of a host are public. Names that only a proxy can resolve count as public."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global for *_, address in found)
