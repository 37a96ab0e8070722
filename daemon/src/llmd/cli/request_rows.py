"""The rows of ``llmd ps --requests``: what each request does, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.cli.output import Column
from llmd.config.durations import format_duration

Row = Mapping[str, Any]

REASONS = {
    "model": "its model to load",
    "memory": "the memory of other models",
    "slots": "a slot",
    "kv_blocks": "KV blocks",
    "grammar": "its grammar",
    "earlier": "earlier requests",
    "client": "its client to read",
}
"""What a request waits for, in words."""


def waits_for(row: Row) -> str:
    """Format what a request waits for; empty if it runs."""
    reason = row.get("waiting_for")
    return "" if reason is None else REASONS.get(str(reason), str(reason))


def tokens(row: Row) -> str:
    """Format the prompt tokens that are computed, all of them, and the tokens of the answer."""
    prompt = row["prompt_tokens"]
    done = min(row.get("prompt_done") or 0, prompt)
    read = str(prompt) if done == prompt else f"{done}/{prompt}"
    return f"{read} + {row['completion_tokens']}"


def age(row: Row) -> str:
    return format_duration(round(row["ms"] / 1e3, 1))


REQUEST_COLUMNS = (
    Column[Row]("ID", lambda row: row["request_id"]),
    Column[Row]("MODEL", lambda row: row["model"]),
    Column[Row]("KEY", lambda row: row["key"] or ""),
    Column[Row]("STATE", lambda row: row["state"]),
    Column[Row]("WAITS FOR", waits_for),
    Column[Row]("AGE", age, lambda row: row["ms"]),
    Column[Row]("TOKENS", tokens, lambda row: row["prompt_tokens"] + row["completion_tokens"]),
)
