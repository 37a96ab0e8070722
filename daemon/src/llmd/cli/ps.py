"""``llmd ps``: loaded models and their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from llmd.api.byte_size import format_bytes
from llmd.cli.connection import connect
from llmd.cli.examples import examples
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.request_rows import REQUEST_COLUMNS
from llmd.cli.settings import client_options

Row = Mapping[str, Any]


def size_of(row: Row) -> int:
    """Return the bytes of the weights, the KV blocks and the rows of a step."""
    return sum(stage[part] for stage in _stages(row) for part in ("weight_bytes", "kv_bytes", "step_bytes"))


def where(row: Row) -> str:
    """Format the devices and their parts of the model."""
    return ", ".join(f"{stage['device']} {stage['parts']}" for stage in _stages(row))


def kv(row: Row) -> str:
    """Format used and total KV blocks and bytes of states; empty for a model that keeps neither."""
    report = row["report"] or {}
    parts = []
    if blocks := report.get("kv_blocks_total"):
        parts.append(f"{report['kv_blocks_used']}/{blocks} blocks")
    if states := report.get("state_bytes_total"):
        parts.append(f"{format_bytes(report['state_bytes_used'])}/{format_bytes(states)} of states")
    return ", ".join(parts)


def context(row: Row) -> str:
    return f"{row['context_len']} tokens" if row.get("context_len") else ""


def requests(row: Row) -> str:
    """Format the numbers of running and waiting requests."""
    report = row["report"]
    return f"{report['running']}/{report['waiting']}" if report else ""


def tokens_per_s(row: Row) -> float | None:
    """Return the mean decode rate since the model was loaded."""
    report = row["report"]
    return report["output_tokens"] / report["decode_s"] if report and report["decode_s"] else None


def rate(row: Row) -> str:
    found = tokens_per_s(row)
    return "" if found is None else f"{found:.1f}"


def state(row: Row) -> str:
    """Format the status with the loading progress, or with what the model waits for or why it failed."""
    if row["error"]:
        return f"{row['status']}: {row['error']}"
    if row["waits_for"]:
        return f"{row['status']}: waiting for the memory of {', '.join(row['waits_for'])}"
    progress = row["loading"]
    if not progress or not progress["total"]:
        return str(row["status"])
    return f"{row['status']} {100 * progress['done'] // progress['total']} %: {progress['phase']}"


def step_ms(row: Row) -> str:
    """Format the milliseconds of a step in each stage, measured/predicted; empty if none is known."""
    times = [(time["measured_ms"], time["predicted_ms"]) for time in row.get("stage_times", ())]
    if not any(value is not None for pair in times for value in pair):
        return ""
    return " + ".join("/".join("?" if ms is None else f"{ms:.1f}" for ms in pair) for pair in times)


def until(row: Row, now: datetime | None = None) -> str:
    """Format the time until the idle model is unloaded."""
    if row["users"]:
        return "in use"
    if row["expires_at"] is None:
        return "for ever"
    left = datetime.fromisoformat(row["expires_at"]) - (now or datetime.now(UTC))
    minutes, seconds = divmod(max(0, round(left.total_seconds())), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def warnings(rows: Sequence[Row]) -> list[str]:
    """Return a line for each warning of the daemon."""
    return [
        f"warning: {row['name']}: {'; '.join(filter(None, [verdict['text'], verdict.get('fix')]))}"
        for row in rows
        for verdict in row.get("verdicts", ())
        if verdict["level"] == "warn"
    ]


def _stages(row: Row) -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = row["loaded"]["stages"] if row.get("loaded") else []
    return stages


COLUMNS = (
    Column[Row]("NAME", lambda row: ", ".join([row["name"], *row["aliases"]])),
    Column[Row]("SIZE", lambda row: format_bytes(size_of(row)), size_of),
    Column[Row]("WHERE", where),
    Column[Row]("KV", kv),
    Column[Row]("CTX", context, lambda row: row.get("context_len") or 0),
    Column[Row]("RUN/WAIT", requests),
    Column[Row]("TOK/S", rate, lambda row: tokens_per_s(row) or 0),
    Column[Row]("STEP MS", step_ms),
    Column[Row]("UNTIL", until, lambda row: row["expires_at"] or "~"),
    Column[Row]("STATE", state),
)


@click.command(epilog=examples("llmd ps", "llmd ps --requests", "llmd ps --json"))
@click.option(
    "--requests", "of_requests", is_flag=True, help="List the requests that run or wait, and for what."
)
@listing_options
@client_options
def command(
    *,
    of_requests: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
    **view: Any,
) -> None:
    """Show loaded models: size, devices, used and total KV blocks (and bytes of the states of linear
    attention), context window, running and waiting requests, tokens/s, and the time until each is unloaded if
    no request arrives.

    STEP MS are the milliseconds that each of the devices works on a step of one sequence, measured/predicted.

    Below the table are warnings: what is wrong, or slower than it has to be. --plain leaves them out.

    With --requests, show each request instead: id, model, name of its API key, state, what it waits for, age,
    and the tokens of its prompt (computed/all) and of its answer. `llmd cancel ID` ends one.
    """
    client = connect(host, timeout_s, config_file)
    if of_requests:
        show(View(**view), "requests", client.requests(), REQUEST_COLUMNS)
        return
    shape, rows = View(**view), client.ps()
    show(shape, "models", rows, COLUMNS)
    if not (shape.plain or shape.as_json) and (lines := warnings(rows)):
        click.echo("\n" + "\n".join(lines))
