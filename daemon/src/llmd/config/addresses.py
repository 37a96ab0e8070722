"""Addresses of a daemon, parsed from text."""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from llmd.api.errors import ConfigError

DEFAULT_PORT = 8642
_FORMS = "HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH"


class TcpAddress(Struct, frozen=True):
    """A TCP address."""

    host: str
    """A host name or an IP address."""
    port: int = DEFAULT_PORT
    """0: any free port."""
    tls: bool = False
    """Whether connections are encrypted."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}" if self.tls else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for HTTP clients."""
        return str(self) if self.tls else f"http://{self}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class UnixAddress(Struct, frozen=True):
    """The address of a Unix socket."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


Address = TcpAddress | UnixAddress
DEFAULT_TCP = TcpAddress("127.0.0.1")


def parse_address(text: str, origin: str = "the address") -> Address:
    """Parse an address.

    The forms are ``HOST``, ``PORT``, ``HOST:PORT``, ``http://HOST:PORT``, ``https://HOST:PORT``,
    ``unix:PATH`` and ``unix:///PATH``. A port without a host is a port of 127.0.0.1.

    Raises:
        ConfigError: the text has another form; the message names ``origin``.
    """
    if text.startswith("unix:"):
        return _unix(text, origin)
    url = text if "//" in text else f"http://{_host_and_port(text)}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(
            f"{origin} is {text!r}: its port is not a number from 0 to 65535", hint=f"write {_FORMS}"
        ) from error
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.path.strip("/")
        or parts.username is not None
    ):
        raise ConfigError(f"{origin} is {text!r}, which is not an address", hint=f"write {_FORMS}")
    return TcpAddress(parts.hostname, DEFAULT_PORT if port is None else port, parts.scheme == "https")


def _host_and_port(text: str) -> str:
    """Complete a short form: add the host to a port, or brackets to an IPv6 address."""
    if text.isdecimal():
        return f"{DEFAULT_TCP.host}:{text}"
    with contextlib.suppress(ValueError):
        return f"[{ipaddress.IPv6Address(text)}]"
    return text


def _unix(text: str, origin: str) -> UnixAddress:
    path = text.removeprefix("unix:")
    if path.startswith("//"):
        path = path.removeprefix("//")
    if not path:
        raise ConfigError(f"{origin} is {text!r}: the path is missing", hint="write unix:PATH")
    return UnixAddress(Path(path).expanduser().absolute())
