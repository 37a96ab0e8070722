"""What is typed or piped in, as text that a request can carry."""

from __future__ import annotations

import io
from typing import IO

import click


def valid(text: str) -> str:
    """Bytes that are no UTF-8 become U+FFFD: no request can carry them."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def valid_option(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """`valid`, as the callback of an option."""
    return None if value is None else valid(value)


def keep_bytes(stdin: IO[str]) -> None:
    """Let standard input read bytes that are no UTF-8, as Python reads the command line."""
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(errors="surrogateescape")
