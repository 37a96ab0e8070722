"""Listings on standard output: aligned columns for people, tabs with ``--plain``, one object with ``--json``."""

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
    """One column: its title, its text for people, and what it is sorted by (the text where None)."""

    title: str
    text: Callable[[Row], str]
    order: Callable[[Row], Any] | None = None


@dataclass(frozen=True)
class View:
    """How a listing is to be shown: the options that all listings share."""

    as_json: bool = False
    plain: bool = False
    columns: str | None = None
    sort: str | None = None


def listing_options(command: Decorated) -> Decorated:
    """Give a command the options of listings; it gets them as the keywords of `View`."""
    for option in (
        click.option("--sort", metavar="COLUMN", help="Sort by this column."),
        click.option("--columns", metavar="A,B", help="Show these columns, in this order."),
        click.option("--plain", is_flag=True, help="Separate columns by tabs."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    ):
        command = option(command)
    return command


def show(view: View, noun: str, rows: Sequence[Row], columns: Sequence[Column[Row]]) -> None:
    """Print rows; ``noun`` is the key that holds them in the JSON object."""
    if view.sort:
        (column,) = _chosen(view.sort, columns)
        rows = sorted(rows, key=column.order or column.text)
    if view.as_json:
        show_json({noun: list(rows)})
        return
    shown = _chosen(view.columns, columns) if view.columns else columns
    lines = [
        [column.title for column in shown],
        *([_in_one_line(column.text(row)) or NOTHING for column in shown] for row in rows),
    ]
    click.echo("\n".join("\t".join(line) for line in lines) if view.plain else aligned(lines))


def show_json(members: dict[str, Any]) -> None:
    """Print one JSON object with its schema number; sizes are in bytes, times in RFC 3339."""
    encoded = msgspec.json.encode({"schema": SCHEMA, **members}, enc_hook=_as_text)
    click.echo(msgspec.json.format(encoded, indent=2))


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Text in columns, two spaces apart, nothing cut off."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _in_one_line(text: str) -> str:
    """A cell: reasons come from plugins and files, and neither break the table nor steer a terminal."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _as_text(value: object) -> str:
    """Paths are texts; anything else that JSON does not have is a mistake."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _chosen(titles: str, columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    """The columns that an option names, upper or lower case."""
    known = {column.title.lower(): column for column in columns}
    wanted = [title.strip().lower() for title in titles.split(",")]
    if unknown := [title for title in wanted if title not in known]:
        raise click.UsageError(f"there is no column {unknown[0]!r}; the columns are {', '.join(known)}")
    return [known[title] for title in wanted]
