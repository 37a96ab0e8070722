"""A table of any number of rows.

Textual's `DataTable` measures each cell: it takes three seconds to show 10 000 rows again. This table draws
only the lines that are visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from llmd_tui.widgets.plain_text import one_line
from llmd_tui.widgets.table_rows import Column, Row, Sorting, fitting

CURSOR = "›"
MARGIN = 2
"""Cells at the left, for the cursor: it is not shown by colour alone."""


class Table(ScrollView, can_focus=True):
    """Rows with a cursor. The cursor stays on its row when the rows change, also if that goes out of view."""

    DEFAULT_CSS = """
    Table {
        height: 1fr;
        overflow-x: hidden;
        background: $background;
        color: $foreground;
        & > .table--header {
            text-style: bold;
            color: $text-muted;
        }
        & > .table--cursor {
            text-style: bold;
        }
        &:focus > .table--cursor {
            text-style: bold reverse;
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "end(False)", "First row", show=False),
        Binding("end", "end(True)", "Last row", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row, or that row has changed; ``key`` is None in an empty table."""

        def __init__(self, key: str | None) -> None:
            super().__init__()
            self.key = key

    class Chosen(Message):
        """A row was clicked twice."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class TitleClicked(Message):
        """The title of a column was clicked."""

        def __init__(self, column: int) -> None:
            super().__init__()
            self.column = column

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__()
        self.columns = columns
        self._rows: Sequence[Row] = ()
        self._sorting = Sorting()
        self._cursor = 0
        self._height = 0
        self._empty = ""

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        return self._rows[self._cursor].key if self._rows else None

    @property
    def is_at_first(self) -> bool:
        """Whether the cursor is on the first row."""
        return self._cursor == 0

    @property
    def shown_columns(self) -> tuple[int, ...]:
        """Indices of the columns for which there is room."""
        return tuple(fitting(self.columns, self._room))

    def show(self, rows: Sequence[Row], sorting: Sorting, *, empty: str = "") -> None:
        """Show these rows in their order, or the words ``empty``; ``sorting`` is marked in the titles."""
        if empty != self._empty:
            self._empty = empty
            self.refresh()
        if rows == self._rows and sorting == self._sorting:
            return
        drawn = (self._rows, self._sorting, self._cursor, self.scroll_offset)
        selected, above = self.selected, self._cursor - round(self.scroll_y)
        self._rows, self._sorting = rows, sorting
        place = next((place for place, row in enumerate(rows) if row.key == selected), None)
        self._cursor = min(self._cursor, max(len(rows) - 1, 0)) if place is None else place
        self._fit()
        # The row stays where it is on the screen, but one who looks at the top goes on seeing the first rows.
        if drawn[3].y or sorting != drawn[1]:
            if place is not None:
                self._scroll(place - above)
            self._keep_cursor_visible()
        if (len(drawn[0]), *drawn[1:]) == (len(rows), sorting, self._cursor, self.scroll_offset):
            self._refresh_changed(drawn[0])
        else:
            self.refresh()
        self.post_message(self.Moved(self.selected))

    def move_to(self, place: int) -> None:
        """Move the cursor to a row; to the nearest one if there is no such row."""
        place = max(min(place, len(self._rows) - 1), 0)
        if place != self._cursor:
            self._cursor = place
            self.post_message(self.Moved(self.selected))
        self._keep_cursor_visible()
        self.refresh()

    def show_first(self) -> None:
        """Move the cursor to the first row, and show it."""
        self.move_to(0)
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def go_to(self, key: str) -> None:
        """Move the cursor to the row of this key, if it is shown."""
        place = next((place for place, row in enumerate(self._rows) if row.key == key), None)
        if place is not None:
            self.move_to(place)

    def action_move(self, rows: int) -> None:
        self.move_to(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        self.move_to(self._cursor + pages * max(self.size.height - 2, 1))

    def action_end(self, is_last: bool) -> None:  # noqa: FBT001 - from a binding
        self.move_to(len(self._rows) - 1 if is_last else 0)

    def render_line(self, y: int) -> Strip:
        """Draw one line; the titles stay at the top."""
        widths = fitting(self.columns, self._room)
        base = self.rich_style
        if y == 0:
            return self._line(
                " ", self._titles(), widths, base + self.get_component_rich_style("table--header")
            )
        place = y - 1 + self.scroll_offset.y
        if not self._rows and y == 1:
            words = Segment(f"{'':{MARGIN}}{self._empty}", base + Style(dim=True))
            return Strip([words]).adjust_cell_length(self._width, base)
        if place >= len(self._rows):
            return Strip.blank(self._width, base)
        row = self._rows[place]
        style = base + Style.parse(row.style)
        if place == self._cursor:
            style += self.get_component_rich_style("table--cursor", partial=True)
        return self._line(CURSOR if place == self._cursor else " ", row.cells, widths, style)

    def on_resize(self) -> None:
        was_visible = self._is_visible(self._cursor)
        self._height = self.size.height
        self._fit()
        if was_visible:  # else the row under the cursor went down, and the person looks at the first rows
            self._keep_cursor_visible()

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            column = self._column_at(event.x)
            if column is not None:
                self.post_message(self.TitleClicked(column))
            return
        place = event.y - 1 + self.scroll_offset.y
        if place >= len(self._rows):
            return
        self.move_to(place)
        if event.chain == 2:
            self.post_message(self.Chosen(self._rows[place].key))

    @property
    def _room(self) -> int:
        return max(self._width - MARGIN, 0)

    @property
    def _width(self) -> int:
        """Cells of a line, without the scroll bar."""
        return self.scrollable_content_region.width

    def _refresh_changed(self, before: Sequence[Row]) -> None:
        """Draw the visible rows again that differ from those before."""
        top = self.scroll_offset.y
        for place in range(top, min(top + self.size.height, len(before))):
            if before[place] != self._rows[place]:
                self.refresh_line(place + 1)

    def _fit(self) -> None:
        self.virtual_size = Size(self._width, len(self._rows) + 1)

    def _is_visible(self, place: int) -> bool:
        """Whether a row was in view at the last size."""
        top = self.scroll_offset.y
        return top <= place < top + max(self._height - 1, 1)

    def _keep_cursor_visible(self) -> None:
        top, visible = self.scroll_offset.y, max(self.size.height - 1, 1)
        if self._cursor < top:
            self._scroll(self._cursor)
        elif self._cursor >= top + visible:
            self._scroll(self._cursor - visible + 1)

    def _scroll(self, top: int) -> None:
        # Forced, since new rows have a scroll bar only after the next layout.
        self.scroll_to(y=top, animate=False, force=True)

    def _titles(self) -> tuple[str, ...]:
        arrow = " ↓" if self._sorting.is_reversed else " ↑"
        return tuple(
            column.title + (arrow if place == self._sorting.column else "")
            for place, column in enumerate(self.columns)
        )

    def _line(self, mark: str, cells: Sequence[str | Text], widths: dict[int, int], style: Style) -> Strip:
        segments = [Segment(f"{mark:{MARGIN}}", style)]
        for place, width in widths.items():
            segments += self._cell(cells[place], width, style, is_number=self.columns[place].is_number)
            segments.append(Segment(" ", style))
        return Strip(segments).adjust_cell_length(self._width, style)

    def _cell(self, cell: str | Text, width: int, style: Style, *, is_number: bool) -> list[Segment]:
        if isinstance(cell, Text):
            shown = cell.copy()
            shown.truncate(width, overflow="ellipsis", pad=True)
            return list(Segment.apply_style(shown.render(self.app.console, end=""), style))
        text = one_line(cell)
        if cell_len(text) > width:
            text = set_cell_size(text, width - 1) + "…"
        elif is_number:
            text = " " * (width - cell_len(text)) + text
        return [Segment(set_cell_size(text, width), style)]

    def _column_at(self, x: int) -> int | None:
        """Return the column below a cell of the line; None right of all columns."""
        end = MARGIN
        for column, width in fitting(self.columns, self._room).items():
            end += width + 1
            if x < end:
                return column
        return None
