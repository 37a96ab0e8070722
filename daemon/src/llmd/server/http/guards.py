"""Host and Origin checks against web pages that send requests to this machine.

A page on any site can make a browser send requests to this machine, through a host name that resolves to
it (DNS rebinding, CVE-2024-28224 in ollama) or as a plain form. Both are refused by the server: missing
CORS headers would only hide the reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from llmd.server.errors import ForbiddenError
from llmd.server.http.host_names import host_name, is_ip, is_local_name, is_loopback
from llmd.server.http.origins import OPAQUE, AllowedOrigins, parse_origin

if TYPE_CHECKING:
    from aiohttp import web

EXPOSED_HEADERS = (
    "x-request-id, request-id, retry-after, retry-after-ms, openai-processing-ms, "
    "x-llmd-ignored, x-llmd-model, x-llmd-truncated"
)
METHODS = "GET, POST, DELETE, HEAD, OPTIONS"


class Peer(Struct, frozen=True):
    """Both ends of a connection. ``local`` is None for the Unix socket."""

    local: str | None
    remote: str | None
    is_encrypted: bool = False

    @property
    def is_unix(self) -> bool:
        return self.local is None

    @property
    def is_this_machine(self) -> bool:
        return self.is_unix or is_loopback(self.remote or "")


def peer_of(request: web.BaseRequest) -> Peer:
    """Return both ends of a request's connection."""
    transport = request.transport
    local = transport.get_extra_info("sockname") if transport else None
    remote = transport.get_extra_info("peername") if transport else None
    encrypted = transport is not None and transport.get_extra_info("sslcontext") is not None
    if not isinstance(local, tuple):
        return Peer(None, None)
    return Peer(local[0], remote[0] if isinstance(remote, tuple) else "", encrypted)


class Guards(Struct, frozen=True):
    """The host names and origins that are allowed in addition to those of this machine."""

    hostname: str
    allow_host: frozenset[str] = frozenset()
    allow_origin: AllowedOrigins = AllowedOrigins()

    def check(self, peer: Peer, headers: Mapping[str, str]) -> None:
        """Raises `ForbiddenError` if the host name or the origin is not allowed."""
        host = headers.get("Host", "")
        if peer.local is not None and is_loopback(peer.local) and not self._host_allowed(host):
            raise ForbiddenError(
                f"the host name {host!r} is not a name of this machine",
                code="host_not_allowed",
                hint=f"start llmd serve with --allow-host {host_name(host)}",
            )
        origin = headers.get("Origin")
        if origin is not None and not (self.origin_allowed(origin) or self._is_own(origin, peer, host)):
            raise ForbiddenError(
                f"requests from pages of {origin} are not allowed",
                code="origin_not_allowed",
                hint=_hint_for_origin(origin),
            )

    def origin_allowed(self, origin: str) -> bool:
        """Whether requests with this ``Origin`` header are accepted."""
        return origin in self.allow_origin

    def _is_own(self, origin: str, peer: Peer, host: str) -> bool:
        """Whether the page is the daemon's own: it was loaded under the name that the request goes to.

        With a name that anyone could have pointed at this machine, that proves nothing.
        """
        own = parse_origin(f"{'https' if peer.is_encrypted else 'http'}://{host}")
        return bool(host) and own is not None and own == parse_origin(origin) and self._host_allowed(host)

    def _host_allowed(self, host: str) -> bool:
        name = host_name(host)
        named = {known.lower() for known in (self.hostname, *self.allow_host)}
        return not name or is_ip(name) or is_local_name(name) or name in named


def _hint_for_origin(origin: str) -> str:
    if origin == OPAQUE:
        return "open the page from http://localhost, not as a file: any page can have the origin null"
    if parse_origin(origin) is None:
        return "send SCHEME://HOST or SCHEME://HOST:PORT as browsers do"
    return f"start llmd serve with --allow-origin {origin}"


def cors_headers(origin: str) -> dict[str, str]:
    """Return the headers that allow a page of an accepted origin to read the reply."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def preflight_headers(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the reply to a CORS preflight request with the headers ``asked``."""
    headers = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": asked.get("Access-Control-Request-Headers") or "*",
        "Access-Control-Max-Age": "600",
    }
    if asked.get("Access-Control-Request-Private-Network") == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return headers
