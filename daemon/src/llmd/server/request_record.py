"""The record of one request: its sender, its deadline, and what was done for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from msgspec import Struct, structs

from llmd.api.errors import LlmdError
from llmd.requests.fields import BadRequestError
from llmd.server.errors import DeadlineError
from llmd.server.request_progress import RequestProgress

TIMEOUT_HEADER = "x-request-timeout-ms"
MAX_TIMEOUT_MS = 7 * 24 * 3600 * 1000


class QueueEntry(Struct, eq=False):
    """An admitted request's share of the queue."""

    key: str
    sequences: int
    tokens: int


class RequestRecord(Struct, eq=False):
    """The record of a request. Times are seconds of the event loop's clock, 0 until they are known."""

    request_id: str = ""
    key: str = ""
    """The name of its API key; empty if it has none."""
    may_manage: bool = False
    """Whether its sender may manage the daemon, and see where its files are."""
    started: float = 0.0
    deadline: float | None = None
    route: str = ""
    status: int = 0
    error: str = ""
    """The error code; empty if it succeeded."""
    model: str = ""
    """The model that answers; empty if no engine is involved."""
    sequences: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    queue_s: float = 0.0
    begun: float = 0.0
    """When its first sequence began to run."""
    first_token: float = 0.0
    last_token: float = 0.0
    finish: str = ""
    """Why the answer ended."""
    traceparent: str = ""
    """The ``traceparent`` header: the trace that the client wants the request to join."""
    progress: RequestProgress = RequestProgress()
    cancelled: LlmdError | None = None
    """The error of a request that was cancelled."""
    stops: list[Callable[[LlmdError], None]] = []
    """What ends its present work with an error."""

    def as_event(self) -> dict[str, Any]:
        """Return the fields for watchers of the event feed: sizes, times and progress, never texts."""
        return {**self.as_log(), "client": self.key or None, **structs.asdict(self.progress)}

    def as_log(self) -> dict[str, Any]:
        """Return the fields for the log: sizes and times, never texts."""
        return {
            "request_id": self.request_id,
            "key": self.key or None,
            "route": self.route,
            "model": self.model,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "queue_ms": round(self.queue_s * 1e3, 1) if self.begun else None,
            "ttft_ms": round((self.first_token - self.started) * 1e3, 1) if self.first_token else None,
            "ms": round((time.monotonic() - self.started) * 1e3, 1),
            "finish": self.finish or None,
            "status": self.status or None,
            "error": self.error or None,
        }

    def limit(self, seconds: float | None) -> None:
        """Set the deadline to ``seconds`` after the arrival, unless it is already earlier."""
        if seconds is not None:
            ends = self.started + seconds
            self.deadline = ends if self.deadline is None else min(self.deadline, ends)

    def cancel(self, error: LlmdError) -> None:
        """End the request: its client gets ``error``, also in a stream that has begun."""
        self.cancelled = error
        for stop in tuple(self.stops):
            stop(error)

    @contextlib.asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Cancel the work in the block at the deadline, or when the request is cancelled.

        Raises:
            DeadlineError: the deadline has passed.
            LlmdError: the request was cancelled.
        """
        limit = asyncio.timeout_at(self.deadline)

        def stop(_error: LlmdError) -> None:
            limit.reschedule(0.0)

        try:
            async with limit:
                self.stops.append(stop)
                try:
                    yield
                finally:
                    self.stops.remove(stop)
        except TimeoutError as error:
            if limit.expired():
                raise (self.cancelled or self.too_late()) from error
            raise

    def too_late(self) -> DeadlineError:
        """Return the error of a request whose deadline has passed."""
        assert self.deadline is not None
        return DeadlineError(
            f"the request did not end within {self.deadline - self.started:g} seconds",
            hint=f"raise {TIMEOUT_HEADER}, or the server's request_timeout_s",
        )


_current: ContextVar[RequestRecord | None] = ContextVar("request_record", default=None)


def current_record() -> RequestRecord:
    """Return the record of the request that this task handles; a new one if there is none."""
    return _current.get() or RequestRecord(started=time.monotonic())


def begin_record(record: RequestRecord) -> None:
    """Set the record of the request that this task handles; each request has its own task."""
    _current.set(record)


def asked_timeout_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the client is willing to wait, if it says so.

    Raises:
        BadRequestError: the header is not a number of milliseconds.
    """
    text = headers.get(TIMEOUT_HEADER)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= MAX_TIMEOUT_MS and len(text) <= 12):
        raise BadRequestError(
            f"{TIMEOUT_HEADER} must be between 1 and {MAX_TIMEOUT_MS}, not {text[:40]!r}",
            code="invalid_value",
            param=TIMEOUT_HEADER,
        )
    return int(text) / 1e3
