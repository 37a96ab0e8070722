"""Errors for HTTP clients, independent of the form that a dialect gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """An error before a dialect formats it."""

    status: int
    """HTTP status, as in OpenAI's table of errors."""
    type: str
    """OpenAI's error type."""
    code: str | None
    """OpenAI's error code."""
    message: str
    """What is wrong, and what to do."""
    param: str | None = None
    """Request field that was refused."""
    extra: Mapping[str, Any] = {}
    """Machine-readable details."""
    headers: Mapping[str, str] = {}
    """HTTP headers of the reply."""


class ErrorReply(msgspec.Struct, frozen=True):
    """An error in the form of a dialect."""

    status: int
    """HTTP status."""
    body: Any
    """JSON value: the whole body, or the last event of a stream."""


class ErrorShape(msgspec.Struct, frozen=True):
    """The form of a dialect's errors."""

    write: Callable[[Problem, str], ErrorReply]
    """Convert a problem, given the request id. Called for each error on one of ``paths``."""
    paths: tuple[str, ...]
    """Path prefixes, with or without routes below them."""
    header: str | None = None
    """Header that marks requests of this dialect on paths that several dialects share."""
