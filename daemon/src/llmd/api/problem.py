"""Errors on their way to HTTP clients: what happened, apart from how a dialect writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """An error in no dialect's form yet. ``status``, ``type`` and ``code`` are those of OpenAI's table.

    ``param`` names the field that was refused; ``extra`` are numbers for programs; ``headers`` go out with the reply.
    """

    status: int
    type: str
    code: str | None
    message: str
    param: str | None = None
    extra: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


class ErrorReply(msgspec.Struct, frozen=True):
    """An error as clients of one dialect read it; ``body`` is JSON, whole or as the last event of a stream."""

    status: int
    body: Any


class ErrorShape(msgspec.Struct, frozen=True):
    """How clients of a dialect expect errors.

    ``write(problem, request_id)`` holds for ``paths`` and all below them, whether or not a route is there. On a path that
    several dialects share, it holds for requests that carry ``header``.
    """

    write: Callable[[Problem, str], ErrorReply]
    paths: tuple[str, ...]
    header: str | None = None
