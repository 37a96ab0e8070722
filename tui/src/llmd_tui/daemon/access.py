"""What the terminal interface asks of a daemon."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

import msgspec

from llmd.api.errors import NotPermittedError


class RefusedError(NotPermittedError):
    """The daemon answers, but it does not allow this: trying again with the same key does not help."""

    def __init__(self, message: str, *, hint: str = "", may_chat: bool = False) -> None:
        """``may_chat``: only managing the daemon is not allowed."""
        super().__init__(message, hint=hint)
        self.may_chat = may_chat


class Event(msgspec.Struct, frozen=True):
    """An event of ``GET /llmd/events``."""

    type: str
    number: int
    fields: Mapping[str, Any]


class Daemon(Protocol):
    """A daemon. Every call raises `llmd.api.errors.LlmdError` with a hint if it fails."""

    @property
    def address(self) -> str:
        """Where it answers, for people to read."""
        ...

    def events(self, after: int | None = None) -> AsyncGenerator[Event, None]:
        """Yield events until the connection ends; those after a number, or a snapshot first."""
        ...

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return the JSON object of a route."""
        ...

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON object and return the one that answers it; an empty one if the answer is empty."""
        ...

    async def delete(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask with a JSON object to delete something, and return the object that answers."""
        ...

    def lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Send a JSON object and yield the lines of JSON that answer it, as ``/llmd/pull`` sends them."""
        ...

    def stream(
        self, path: str, body: Mapping[str, Any] | None = None, *, request_id: str = "", **query: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the data of server-sent events, until the stream ends; GET if there is no body.

        Closing the iterator ends the request. ``request_id`` is the id under which events tell of it.
        """
        ...

    async def close(self) -> None:
        """End the open requests."""
        ...
