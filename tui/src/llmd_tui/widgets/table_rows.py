"""Rows and columns of a table: which of them are shown, in which order, how wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.text import Text

from llmd_tui.widgets.plain_text import one_line

LEAST_WIDTH = 8
"""Cells that a column without a fixed width gets at least."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    width: int = 0
    """In cells; 0: such columns share what the others leave."""
    from_width: int = 0
    """The column is left out if the table has fewer cells than this."""
    is_number: bool = False
    """Its cells are aligned at the right, and its largest values come first when it is sorted."""


class Row(NamedTuple):
    """A row of a table."""

    key: str
    """Identifies the row while its cells and its place change."""
    cells: tuple[str | Text, ...]
    """One for each column."""
    order: tuple[Any, ...] = ()
    """What each column is sorted by, None last; empty: its cells."""
    style: str = ""


class Sorting(NamedTuple):
    """The column that a table is sorted by; None: the order in which rows were given."""

    column: int | None = None
    is_reversed: bool = False


def arranged(rows: Iterable[Row], columns: Sequence[Column], wanted: str, sorting: Sorting) -> list[Row]:
    """Return the rows that contain each word of ``wanted``, sorted; case does not matter."""
    words = wanted.lower().split()
    places = [place for place, column in enumerate(columns) if not column.is_number]
    found = [row for row in rows if _contains(row, places, words)] if words else list(rows)
    column = sorting.column
    if column is None:
        return found[::-1] if sorting.is_reversed else found
    known = [row for row in found if _value(row, column) is not None]
    unknown = [row for row in found if _value(row, column) is None]
    return sorted(known, key=lambda row: _value(row, column), reverse=sorting.is_reversed) + unknown


def following(sorting: Sorting, columns: Sequence[Column], shown: Sequence[int]) -> Sorting:
    """Return the sorting by the next column that is shown; after the last one, by none."""
    later = [one for one in shown if sorting.column is None or one > sorting.column]
    return by_column(columns, later[0]) if later else Sorting()


def by_column(columns: Sequence[Column], column: int) -> Sorting:
    """Return the sorting by a column: texts from A, numbers from the largest."""
    return Sorting(column, is_reversed=columns[column].is_number)


def fitting(columns: Sequence[Column], width: int) -> dict[int, int]:
    """Return the columns that fit into ``width`` cells, with their widths; one cell is between columns."""
    kept = [place for place, column in enumerate(columns) if column.from_width <= width]
    flexible = [place for place in kept if not columns[place].width]
    free = max(width - len(kept) + 1 - sum(columns[place].width for place in kept), 0)
    share, rest = divmod(free, max(len(flexible), 1))
    widths = {place: columns[place].width for place in kept}
    for number, place in enumerate(flexible):
        widths[place] = max(share + (number < rest), LEAST_WIDTH)
    return widths


def _contains(row: Row, places: Sequence[int], words: Sequence[str]) -> bool:
    text = "\0".join(str(row.cells[place]) for place in places).lower()
    return all(word in text for word in words)


def _value(row: Row, column: int) -> Any:
    return row.order[column] if row.order else one_line(str(row.cells[column])).casefold()
