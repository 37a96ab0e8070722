"""The server that is measured: where it is, and how a sample is asked there."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.benchmark.sample import Sample
from llmd.config import UnixAddress, parse_address

COMPLETIONS, CHAT = "openai", "openai-chat"
PATHS = {COMPLETIONS: "/v1/completions", CHAT: "/v1/chat/completions"}
_FORMS = "http://HOST:PORT, https://HOST:PORT or unix:PATH"


class Target(Struct, frozen=True):
    """A server's URL without a slash at its end; ``socket`` where it listens on a Unix socket instead."""

    url: str
    socket: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a base URL. One that ends with ``/v1``, as clients of OpenAI are given it, means the same.

        Raises:
            ConfigError: it is none.
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
            raise ConfigError(f"--base-url is {text!r}, which is no URL", hint=f"write {_FORMS}")
        return cls(url.rstrip("/").removesuffix("/v1"))

    def connector(self, ca_file: str | None = None) -> aiohttp.BaseConnector:
        """Connections without a limit: how many requests run at once is the load's to say. Each request has its own, since
        servers close those that were kept at times of their own, and a request that is on its way then is lost.

        ``ca_file`` holds the certificates that vouch for the server, where the system does not know them.
        """
        if self.socket is not None:
            return aiohttp.UnixConnector(str(self.socket), limit=0, force_close=True)
        trust = ssl.create_default_context(cafile=ca_file) if ca_file else True
        return aiohttp.TCPConnector(limit=0, force_close=True, ssl=trust)


class Endpoint(Struct, frozen=True):
    """How samples become requests: of ``/v1/completions`` (``openai``) or of ``/v1/chat/completions`` (``openai-chat``).

    ``fields`` are sent with each.
    """

    kind: str
    path: str
    model: str
    fields: Mapping[str, Any] = {}

    def body(self, sample: Sample) -> dict[str, Any]:
        """The request of a sample."""
        head = {"model": self.model, "stream": True, "stream_options": {"include_usage": True}}
        if self.kind == CHAT:
            messages = [{"role": "user", "content": sample.prompt}]
            asked = {"messages": messages, "max_completion_tokens": sample.output_len}
        else:
            asked = {"prompt": sample.prompt, "max_tokens": sample.output_len}
        return {**head, **asked, **self.fields}
