"""Who may ask: Host and Origin checks against pages in a browser, and what only this machine may do.

A page on any site can make a browser send requests to this machine, under a host name that it lets point here (DNS
rebinding, CVE-2024-28224 at ollama) or as a plain form. Both are refused on the server: leaving out CORS headers
would only hide the answer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct

from llmd.server.errors import ForbiddenError

EXPOSED_HEADERS = "x-request-id, retry-after"
METHODS = "GET, POST, DELETE, HEAD, OPTIONS"


class Peer(Struct, frozen=True):
    """Both ends of a connection; ``local`` None is the Unix socket."""

    local: str | None
    remote: str | None

    @property
    def is_unix(self) -> bool:
        return self.local is None

    @property
    def is_this_machine(self) -> bool:
        return self.is_unix or _is_loopback(self.remote or "")


def peer_of(request: web.BaseRequest) -> Peer:
    """Both ends of a request's connection."""
    transport = request.transport
    local = transport.get_extra_info("sockname") if transport else None
    remote = transport.get_extra_info("peername") if transport else None
    if not isinstance(local, tuple):
        return Peer(None, None)
    return Peer(local[0], remote[0] if isinstance(remote, tuple) else "")


class Guards(Struct, frozen=True):
    """The names and origins that are let through beside those of this machine."""

    hostname: str
    allow_host: frozenset[str] = frozenset()
    allow_origin: frozenset[str] = frozenset()

    def check(self, peer: Peer, headers: Mapping[str, str]) -> None:
        """Raises `ForbiddenError` for a host name or an origin that is not let through."""
        host = headers.get("Host", "")
        if peer.local is not None and _is_loopback(peer.local) and not self._host_allowed(host):
            raise ForbiddenError(
                f"the host name {host!r} is not one of this machine",
                code="host_not_allowed",
                hint=f"start llmd serve with --allow-host {_hostname(host)}",
            )
        origin = headers.get("Origin")
        if origin is not None and not self.origin_allowed(origin):
            raise ForbiddenError(
                f"requests from pages of {origin} are not allowed",
                code="origin_not_allowed",
                hint=f"start llmd serve with --allow-origin {origin}",
            )

    def origin_allowed(self, origin: str) -> bool:
        """Pages of this machine may ask, on any port, and those that were allowed by name."""
        scheme, _, host = origin.partition("://")
        local = scheme in {"http", "https"} and _is_local_name(_hostname(host))
        return local or origin in self.allow_origin

    def _host_allowed(self, host: str) -> bool:
        name = _hostname(host)
        named = {known.lower() for known in (self.hostname, *self.allow_host)}
        return not name or _is_ip(name) or _is_local_name(name) or name in named


def cors_headers(origin: str) -> dict[str, str]:
    """What lets a page of an allowed origin read the reply."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def preflight_headers(requested: str) -> dict[str, str]:
    """The reply to a browser that asks before it sends."""
    return {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": requested or "*",
        "Access-Control-Max-Age": "600",
    }


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return host


def _is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost") or _is_loopback(name)


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
