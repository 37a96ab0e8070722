"""Stored responses, in memory only. The oldest are evicted first."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from llmd.api.decoding import prepared

MAX_RESPONSES = 1000
MAX_BYTES = 64 << 20


class Stored(Struct, frozen=True):
    """A response, and all items of its conversation including its output."""

    body: dict[str, Any]
    items: list[Any]


class ResponseStore:
    """Responses by API key and id; other keys cannot see them. Use on the event loop only."""

    def __init__(self, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._encoded: dict[tuple[str, str], bytes] = {}
        self._num_bytes = 0

    def put(self, key: str, body: dict[str, Any], items: list[Any]) -> None:
        """Store a response under its id; one larger than the whole store is not kept."""
        encoded = msgspec.json.encode(Stored(body, items))
        if len(encoded) > self._max_bytes:  # it would evict all others before itself
            return
        self._encoded[key, body["id"]] = encoded
        self._num_bytes += len(encoded)
        while len(self._encoded) > self._max_responses or self._num_bytes > self._max_bytes:
            self._remove(next(iter(self._encoded)))

    def get(self, key: str, response_id: str) -> Stored | None:
        """Return the response with that id; None if there is none."""
        encoded = self._encoded.get((key, response_id))
        return None if encoded is None else msgspec.json.decode(encoded, type=prepared(Stored))

    def delete(self, key: str, response_id: str) -> bool:
        """Delete a response; return whether it existed."""
        known = (key, response_id) in self._encoded
        if known:
            self._remove((key, response_id))
        return known

    def _remove(self, name: tuple[str, str]) -> None:
        self._num_bytes -= len(self._encoded.pop(name))
