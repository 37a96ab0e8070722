"""The rows of the table of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llmd_tui.state.daemon_state import DaemonState, Request
from llmd_tui.widgets.words import seconds, share, waiting_reason

ENDED_SHOWN = 20


class Column(NamedTuple):
    """A column of the table."""

    title: str
    width: int
    rank: int
    """Columns with a larger rank are left out first on narrow terminals."""


COLUMNS: Sequence[Column] = (
    Column("REQUEST", 10, 0),
    Column("MODEL", 16, 7),
    Column("STATE", 26, 0),
    Column("PROMPT", 11, 2),
    Column("CACHED", 6, 6),
    Column("OUT", 6, 1),
    Column("TOK/S", 6, 3),
    Column("FIRST", 7, 5),
    Column("AGE", 9, 4),
    Column("KV", 5, 9),
    Column("CLIENT", 12, 8),
    Column("ROUTE", 24, 10),
)
PADDING = 2
"""Columns of the terminal between two columns of the table."""


def fitting(width: int) -> tuple[Column, ...]:
    """Return the columns that fit into a width, those with the smallest ranks first chosen."""
    kept: list[Column] = []
    for column in sorted(COLUMNS, key=lambda column: column.rank):
        if sum(one.width + PADDING for one in [*kept, column]) > width:
            break
        kept.append(column)
    return tuple(column for column in COLUMNS if column in kept)


def row_of(request: Request) -> tuple[str, ...]:
    """Return the cells of a request in the order of `COLUMNS`."""
    done = request.prompt_done
    prompt = f"{request.prompt_tokens}"
    if done is not None and request.state in {"waiting", "prefill"}:
        prompt = f"{done}/{request.prompt_tokens}"
    cached = share(request.cached_tokens / request.prompt_tokens) if request.prompt_tokens else "-"
    speed = request.tokens_per_s
    return (
        short_id(request.request_id),
        request.model,
        state_of(request),
        prompt,
        cached,
        str(request.completion_tokens),
        "-" if speed is None else f"{speed:.0f}",
        seconds(request.ttft_ms),
        seconds(request.ms),
        "-" if request.kv_blocks is None else str(request.kv_blocks),
        request.key or "-",
        request.route,
    )


def short_id(request_id: str) -> str:
    """Return the end of an id, which differs from request to request."""
    return request_id.rpartition("-")[2][-10:]


def state_of(request: Request) -> str:
    """Return the state of a request in words, with the reason why it waits."""
    if request.error:
        return f"failed: {request.error}"
    if request.finish:
        return f"ended: {request.finish}"
    if request.state in {"queued", "waiting"}:
        return waiting_reason(request.waiting_for)
    return request.state or "-"


def shown_requests(state: DaemonState, wanted: str) -> list[Request]:
    """Return the live requests, oldest first, then those that ended last, if they match ``wanted``."""
    rows = [*state.requests.values(), *reversed(state.ended[-ENDED_SHOWN:])]
    if not wanted:
        return rows
    return [one for one in rows if any(wanted.lower() in cell.lower() for cell in row_of(one))]
