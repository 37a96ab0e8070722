"""A table that is filtered and sorted by the person who looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from llmd_tui.widgets.live_text import LiveText
from llmd_tui.widgets.table import Table
from llmd_tui.widgets.table_rows import Column, Row, Sorting, arranged, by_column, following


class FilterTable(Vertical):
    """A table; ``/`` filters its rows and ``s`` sorts them by the next column."""

    DEFAULT_CSS = """
    FilterTable {
        height: 1fr;
        & > Input {
            display: none;
            height: 1;
            border: none;
            padding: 0 1;
        }
        &.-filtered > Input {
            display: block;
        }
        & > .counted {
            height: 1;
            padding: 0 2;
            color: $text-muted;
        }
    }
    """
    BINDING_GROUP_TITLE = "The table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("S", "reverse", "Reverse", show=False),
        Binding("escape", "show_all", "Show all", show=False),
    ]

    class Sorted(Message):
        """The rows are sorted by a column, or by none."""

        def __init__(self, sorting: Sorting) -> None:
            super().__init__()
            self.sorting = sorting

    def __init__(self, columns: Sequence[Column], noun: str, *, sorting: Sorting | None = None) -> None:
        """``noun`` is the plural of what the rows are."""
        super().__init__()
        self._columns = columns
        self._noun = noun
        self._rows: Sequence[Row] = ()
        self._wanted = ""
        self.sorting = sorting or Sorting()

    def compose(self) -> ComposeResult:
        yield Input(placeholder=f"Show only {self._noun} with these words; Esc shows all", compact=True)
        yield Table(self._columns)
        yield LiveText(classes="counted")

    @property
    def table(self) -> Table:
        return self.query_one(Table)

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        return self.table.selected

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows, as far as they pass the filter."""
        self._rows = rows
        self._arrange()

    def focus_table(self) -> None:
        self.table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while all rows are shown."""
        return self.has_class("-filtered") if action == "show_all" else True

    def action_filter(self) -> None:
        """Ask for the words that rows must have."""
        self.add_class("-filtered")
        self.query_one(Input).focus()

    def action_show_all(self) -> None:
        """Show all rows again."""
        self.query_one(Input).value = ""
        self.remove_class("-filtered")
        self.focus_table()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._sort(following(self.sorting, self._columns, self.table.shown_columns))

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._sort(self.sorting._replace(is_reversed=not self.sorting.is_reversed))

    @on(Table.TitleClicked)
    def sort_by_title(self, message: Table.TitleClicked) -> None:
        message.stop()
        if message.column == self.sorting.column:
            self.action_reverse()
        else:
            self._sort(by_column(self._columns, message.column))

    @on(Input.Changed)
    def filter_rows(self, event: Input.Changed) -> None:
        event.stop()
        self._wanted = event.value
        self._arrange()

    @on(Input.Submitted)
    def leave_filter(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_table()
        self.set_class(bool(self._wanted), "-filtered")

    def _sort(self, sorting: Sorting) -> None:
        self.sorting = sorting
        self._arrange()
        self.post_message(self.Sorted(sorting))

    def _arrange(self) -> None:
        shown = arranged(self._rows, self._columns, self._wanted, self.sorting)
        self.table.show(shown, self.sorting)
        self.query_one(LiveText).show_text(self._counted(len(shown)))

    def _counted(self, shown: int) -> str:
        number = f"{shown} of {len(self._rows)}" if self._wanted else str(len(self._rows))
        by = (
            ""
            if self.sorting.column is None
            else f", sorted by {self._columns[self.sorting.column].title.lower()}"
        )
        noun = self._noun.removesuffix("s") if number == "1" else self._noun
        return f"{number} {noun}{by}"
