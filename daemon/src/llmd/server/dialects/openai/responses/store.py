"""Responses that were to be kept, in memory: the oldest go first, and all go with the daemon."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

MAX_RESPONSES = 1000
MAX_BYTES = 64 << 20


class Stored(Struct, frozen=True):
    """A response, and all items of its conversation up to its own output."""

    body: dict[str, Any]
    items: list[Any]


class ResponseStore:
    """Responses by id. Who has another API key does not see them. Used on the event loop alone."""

    def __init__(self, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._encoded: dict[tuple[str, str], bytes] = {}
        self._num_bytes = 0

    def put(self, key: str, body: dict[str, Any], items: list[Any]) -> None:
        """Keep a response under its id; one that is larger than everything may be is not kept."""
        encoded = msgspec.json.encode(Stored(body, items))
        self._encoded[key, body["id"]] = encoded
        self._num_bytes += len(encoded)
        while len(self._encoded) > self._max_responses or self._num_bytes > self._max_bytes:
            self._remove(next(iter(self._encoded)))

    def get(self, key: str, response_id: str) -> Stored | None:
        """The response of that id."""
        encoded = self._encoded.get((key, response_id))
        return None if encoded is None else msgspec.json.decode(encoded, type=Stored)

    def delete(self, key: str, response_id: str) -> bool:
        """Forget a response; whether there was one."""
        known = (key, response_id) in self._encoded
        if known:
            self._remove((key, response_id))
        return known

    def _remove(self, name: tuple[str, str]) -> None:
        self._num_bytes -= len(self._encoded.pop(name))
