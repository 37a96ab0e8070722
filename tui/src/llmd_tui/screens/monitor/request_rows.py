"""The rows of the table of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd_tui.state.daemon_state import DaemonState, Request
from llmd_tui.widgets.table_rows import Column, Row
from llmd_tui.widgets.words import seconds, share, waiting_reason

ENDED_SHOWN = 20
LEAST_MS = 100.0
"""Time between tokens from which a rate says something: several may be handed over at once."""
LEGEND: Mapping[str, str] = {
    "PROMPT": "tokens of the prompt; while it is read, how many of them are",
    "CACHED": "share of the prompt that the prefix cache had",
    "OUT": "tokens of the answer",
    "TOK/S": "tokens per second of this request, from its first token to its last",
    "FIRST": "time to the first token",
    "AGE": "time since the request came; of one that has ended, how long it took",
    "KV": "blocks of the KV cache that it uses",
    "CLIENT": "name of the key",
    "output": "tokens per second of all requests together, over each second",
    "per token": "time from one token of a request to its next",
}
"""What the columns and the graphs say, where their titles do not."""


COLUMNS: Sequence[Column] = (
    Column("REQUEST", 11),
    Column("MODEL", 17, 115),
    Column("STATE", 27),
    Column("PROMPT", 12, 61),
    Column("CACHED", 7, 97),
    Column("OUT", 7, 48),
    Column("TOK/S", 7, 69),
    Column("FIRST", 8, 89),
    Column("AGE", 10, 80),
    Column("KV", 6, 136),
    Column("CLIENT", 13, 129),
    Column("ROUTE", 25, 162),
)


def row_of(request: Request) -> Row:
    """Return the row of a request."""
    done = request.prompt_done
    prompt = f"{request.prompt_tokens}"
    if done is not None and request.state in {"waiting", "prefill"}:
        prompt = f"{done}/{request.prompt_tokens}"
    cached = share(request.cached_tokens / request.prompt_tokens) if request.prompt_tokens else "-"
    speed = request.tokens_per_s if request.ms - (request.ttft_ms or 0.0) >= LEAST_MS else None
    cells = (
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
    return Row(request.request_id, cells)


def short_id(request_id: str) -> str:
    """Return the end of an id, which differs from request to request."""
    return request_id.rpartition("-")[2][-10:]


def state_of(request: Request) -> str:
    """Return the state of a request in words, with the reason why it waits."""
    if request.error == "request_cancelled":
        return "cancelled"
    if request.error:
        return f"failed: {request.error}"
    if request.finish:
        return f"ended: {request.finish}"
    if request.is_waiting:
        return waiting_reason(request.waiting_for)
    return request.state or "-"


def shown_rows(state: DaemonState, wanted: str) -> list[Row]:
    """Return the live requests, oldest first, then those that ended last, if they match ``wanted``."""
    requests = [*state.requests.values(), *reversed(state.ended[-ENDED_SHOWN:])]
    rows = [row_of(one) for one in {one.request_id: one for one in requests}.values()]
    return [row for row in rows if any(wanted.lower() in str(cell).lower() for cell in row.cells)]
