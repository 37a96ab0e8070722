"""The web pages and apps that may send requests, by their ``Origin`` header.

Pages of this machine and desktop apps are allowed by default; patterns allow more. Pages of the internet
have ``http``, ``https`` or the origin ``null`` and are refused. Browser extensions are refused, too: any
of them could send requests on behalf of another page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.server.http.host_names import host_name, is_local_name

ANY = "*"
PAGE_SCHEMES = frozenset({"http", "https"})
APP_SCHEMES = frozenset({"app", "file", "tauri", "vscode-file", "vscode-webview"})
"""Schemes that no web page has: Electron apps (``app``: Obsidian), Tauri apps and VS Code extensions."""

OPAQUE = "null"
"""The origin of a page opened as a file, and of any page in a sandboxed frame."""

_DEFAULT_PORTS = {"http": "80", "https": "443"}
_FORMS = "https://app.example, https://*.example.com, http://192.168.1.5:*, chrome-extension://ID or app://*"
_HOST = r"\[[0-9a-f:.]+\]|[^\s:/?#@\[\]]*"
_ORIGIN = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>{_HOST})(?::(?P<port>\d*|\*))?")
_PATTERN_HOST = re.compile(r"\*|\[[0-9a-f:.]+\]|(?:\*\.)?[a-z0-9._-]+")


class Origin(Struct, frozen=True):
    """``SCHEME://HOST:PORT``. ``port`` is empty for the scheme's default port.

    In a pattern, ``host`` may be ``*`` (with any port, unless one is given) or begin with ``*.``, and
    ``port`` may be ``*``.
    """

    scheme: str
    host: str
    port: str = ""

    @property
    def is_local_page(self) -> bool:
        """Whether it is a page that this machine serves."""
        # Development servers print 0.0.0.0 as their address.
        return self.scheme in PAGE_SCHEMES and (is_local_name(self.host) or self.host in {"0.0.0.0", "::"})  # noqa: S104

    @property
    def is_app(self) -> bool:
        """Whether it is an app on this machine, which no web page can imitate."""
        return self.scheme in APP_SCHEMES

    def matches(self, origin: Origin) -> bool:
        """Whether this pattern covers an origin."""
        same_scheme, same_port = self.scheme == origin.scheme, self.port in {ANY, origin.port}
        return same_scheme and same_port and self._matches_host(origin.host)

    def _matches_host(self, host: str) -> bool:
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and host != self.host[1:]
        return self.host in {ANY, host}


class AllowedOrigins(Struct, frozen=True):
    """The origins that are accepted in addition to pages and apps of this machine."""

    patterns: tuple[Origin, ...] = ()
    everything: bool = False

    def __contains__(self, text: str) -> bool:
        """Whether requests with this ``Origin`` header are accepted."""
        if self.everything:
            return True
        origin = parse_origin(text)
        if origin is None:
            return False
        return origin.is_local_page or origin.is_app or any(known.matches(origin) for known in self.patterns)


def parse_origin(text: str) -> Origin | None:
    """Parse an ``Origin`` header; None if it has no scheme and host, like ``null``."""
    match = _ORIGIN.fullmatch(text.lower())
    if match is None or match["port"] == ANY:
        return None
    return _origin(match)


def allowed_origins(patterns: Iterable[str], source: str) -> AllowedOrigins:
    """Parse the patterns of the setting ``allow_origin``; ``source`` is where it was set.

    Raises:
        ConfigError: one of them is neither an origin nor a pattern.
    """
    given = tuple(patterns)
    named = tuple(_parse_pattern(text, source) for text in given if text != ANY)
    return AllowedOrigins(named, everything=ANY in given)


def _parse_pattern(text: str, source: str) -> Origin:
    refused = f"allow_origin from {source} is {text!r}: "
    if text == OPAQUE:
        raise ConfigError(
            f"{refused}any page can have the origin null",
            hint="open the page from http://localhost, not as a file; * allows every page",
        )
    if "://" not in text:
        raise ConfigError(f"{refused}the scheme is missing", hint=f"write https://{text} or http://{text}")
    match = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    if match is None:
        raise ConfigError(f"{refused}it is not SCHEME://HOST or SCHEME://HOST:PORT", hint=f"write {_FORMS}")
    if not _PATTERN_HOST.fullmatch(match["host"]):
        raise ConfigError(
            f"{refused}its host is neither a name nor a pattern",
            hint=f"use * for the whole host or for its first part, before a dot: write {_FORMS}",
        )
    if match["host"] == ANY and match["port"] is None:
        return Origin(match["scheme"], ANY, ANY)
    return _origin(match)


def _origin(match: re.Match[str]) -> Origin:
    scheme, port = match["scheme"], match["port"] or ""
    return Origin(scheme, host_name(match["host"]), "" if port == _DEFAULT_PORTS.get(scheme) else port)
