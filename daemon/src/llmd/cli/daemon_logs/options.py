"""The options of ``llmd logs`` and ``llmd service logs``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

LEVELS = ("error", "warning", "info", "debug")


class LogView(Struct, frozen=True):
    """Which lines of a log to show."""

    lines: int = 100
    follow: bool = False
    level: str | None = None
    """The least severe level; None: all."""
    request: str | None = None
    """Only events of this request."""


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command gets them as ``view``."""

    @click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
    @click.option(
        "-n",
        "--lines",
        type=click.IntRange(min=0),
        default=LogView().lines,
        show_default=True,
        metavar="N",
        help="Show the last N lines.",
    )
    @click.option(
        "--level", type=click.Choice(LEVELS), help="Show events of this level or a more severe one."
    )
    @click.option("--request", metavar="ID", help="Show events of one request (x-request-id).")
    @functools.wraps(command)
    def wrapped(
        *arguments: Any, lines: int, follow: bool, level: str | None, request: str | None, **others: Any
    ) -> None:
        command(*arguments, view=LogView(lines, follow, level, request), **others)

    return wrapped
