"""The measured server: its address, and the form of its requests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.benchmark.load import Sample
from llmd.client_tls import trusting
from llmd.config import UnixAddress, parse_address

COMPLETIONS, CHAT = "openai", "openai-chat"
PATHS = {COMPLETIONS: "/v1/completions", CHAT: "/v1/chat/completions"}
_FORMS = "http://HOST:PORT, https://HOST:PORT or unix:PATH"


class Target(Struct, frozen=True):
    """The address of a server."""

    url: str
    """Without a trailing slash."""
    socket: Path | None = None
    """The Unix socket to connect to instead of the URL's host."""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse a base URL. A trailing ``/v1``, as OpenAI's clients use it, is removed.

        Raises:
            ConfigError: it is not a valid URL.
        """
        if text.startswith("unix:"):
            address = parse_address(text, "--base-url")
            assert isinstance(address, UnixAddress)
            return cls("http://localhost", address.path)
        url = text if "//" in text else f"http://{text}"
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url:
            raise ConfigError(f"--base-url is {text!r}, which is not a valid URL", hint=f"write {_FORMS}")
        return cls(url.rstrip("/").removesuffix("/v1"))

    def connector(self, ca_file: str | None = None) -> aiohttp.BaseConnector:
        """Return a connector without a connection limit: the load limits the concurrency.

        Each request has its own connection: servers close idle ones at any time, and a request in flight
        would be lost. ``ca_file`` has CA certificates for a server whose certificate the system does not
        trust.
        """
        if self.socket is not None:
            return aiohttp.UnixConnector(str(self.socket), limit=0, force_close=True)
        trust = trusting(ca_file) if ca_file else True
        return aiohttp.TCPConnector(limit=0, force_close=True, ssl=trust)


class Endpoint(Struct, frozen=True):
    """Turns samples into requests."""

    kind: str
    """``openai`` for ``/v1/completions``, ``openai-chat`` for ``/v1/chat/completions``."""
    path: str
    model: str
    fields: Mapping[str, Any] = {}
    """Sent with each request."""

    def body(self, sample: Sample) -> dict[str, Any]:
        """Return the request body for a sample."""
        head = {"model": self.model, "stream": True, "stream_options": {"include_usage": True}}
        if self.kind == CHAT:
            messages = [{"role": "user", "content": sample.prompt}]
            asked = {"messages": messages, "max_completion_tokens": sample.output_len}
        else:
            asked = {"prompt": sample.prompt, "max_tokens": sample.output_len}
        return {**head, **asked, **self.fields}
