"""Turns typed or piped input into text that a request can carry."""

from __future__ import annotations

import io
from typing import IO

import click


def valid(text: str) -> str:
    """Replace bytes that are not UTF-8 with U+FFFD: a request cannot carry them."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def valid_option(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Apply `valid` to the value of an option (a click callback)."""
    return None if value is None else valid(value)


def keep_bytes(stdin: IO[str]) -> None:
    """Make standard input accept bytes that are not UTF-8, as Python does for the command line."""
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(errors="surrogateescape")
