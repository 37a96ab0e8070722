"""Listings: aligned columns for people, tab-separated with ``--plain``, one object with ``--json``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
import msgspec

SCHEMA = 1
NOTHING = "–"
Row = TypeVar("Row")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a listing."""

    title: str
    text: Callable[[Row], str]
    """Returns the cell text of a row."""
    order: Callable[[Row], Any] | None = None
    """Returns the sort key of a row; None: the text is the key."""
    old_title: str = ""
    """A title from earlier versions that ``--columns`` and ``--sort`` still accept."""


@dataclass(frozen=True)
class View:
    """The options that all listings share."""

    as_json: bool = False
    plain: bool = False
    columns: str | None = None
    sort: str | None = None


def listing_options(command: Decorated) -> Decorated:
    """Add the listing options to a command; they arrive as the keywords of `View`."""
    for option in (
        click.option("--sort", metavar="COLUMN", help="Sort by this column."),
        click.option("--columns", metavar="A,B", help="Show only these columns, in this order."),
        click.option("--plain", is_flag=True, help="Separate columns with tabs."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    ):
        command = option(command)
    return command


def show(
    view: View,
    noun: str,
    rows: Sequence[Row],
    columns: Sequence[Column[Row]],
    json_row: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> None:
    """Print rows.

    ``noun`` is their key in the JSON object; ``json_row`` may change the object of each row.
    """
    if view.sort:
        (column,) = _chosen(view.sort, columns)
        rows = sorted(rows, key=column.order or column.text)
    if view.as_json:
        objects = [msgspec.to_builtins(row, enc_hook=_as_text) for row in rows]
        show_json({noun: objects if json_row is None else [json_row(one) for one in objects]})
        return
    shown = _chosen(view.columns, columns) if view.columns else columns
    lines = [
        [column.title for column in shown],
        *([_in_one_line(column.text(row)) or NOTHING for column in shown] for row in rows),
    ]
    click.echo("\n".join("\t".join(line) for line in lines) if view.plain else aligned(lines))


def show_json(members: dict[str, Any]) -> None:
    """Print one JSON object with its schema number. Sizes are in bytes, times in RFC 3339."""
    encoded = msgspec.json.encode({"schema": SCHEMA, **members}, enc_hook=_as_text)
    click.echo(msgspec.json.format(encoded, indent=2))


def show_step(step: dict[str, Any]) -> None:
    """Print one step of a command as a line of JSON with its schema number."""
    click.echo(msgspec.json.encode({"schema": SCHEMA, **step}))


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Align cells in columns, two spaces apart, without truncating any."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _in_one_line(text: str) -> str:
    """Return a cell in one line, without control characters: its text may come from plugins and files."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _as_text(value: object) -> str:
    """Encode a path as text; any other type without a JSON form is a bug."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _chosen(titles: str, columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    """Return the columns that an option names, in any case."""
    known = {column.title.lower(): column for column in columns}
    old = {column.old_title.lower(): column for column in columns if column.old_title}
    wanted = [title.strip().lower() for title in titles.split(",")]
    if unknown := [title for title in wanted if title not in known | old]:
        raise click.UsageError(f"there is no column {unknown[0]!r}; the columns are {', '.join(known)}")
    return [(known | old)[title] for title in wanted]
