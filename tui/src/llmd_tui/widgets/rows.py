"""A table whose rows change while one looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widgets import DataTable


class Rows(DataTable[str]):
    """Rows by key. An update changes only the cells that differ, and leaves the cursor on its row."""

    def __init__(self, columns: Sequence[tuple[str, int]], id: str | None = None) -> None:  # noqa: A002 - Textual's
        """``columns`` have a title and a width."""
        super().__init__(cursor_type="row", cell_padding=1, id=id)
        self._titles = list(columns)
        self._shown: dict[str, tuple[str, ...]] = {}

    def on_mount(self) -> None:
        self.set_columns(self._titles)

    def set_columns(self, columns: Sequence[tuple[str, int]]) -> None:
        """Show other columns, without rows."""
        self.clear(columns=True)
        self._shown = {}
        self._titles = list(columns)
        for title, width in columns:
            self.add_column(title, width=width, key=title)

    def show(self, rows: Mapping[str, Sequence[str]]) -> None:
        """Show these rows in their order."""
        wanted = {key: tuple(cells) for key, cells in rows.items()}
        if list(wanted) != list(self._shown):
            self._show_again(wanted)
        else:
            for key, cells in wanted.items():
                for (title, _), before, cell in zip(self._titles, self._shown[key], cells, strict=True):
                    if before != cell:
                        self.update_cell(key, title, cell)
        self._shown = wanted

    @property
    def selected(self) -> str | None:
        """The key of the row with the cursor."""
        keys = list(self._shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def _show_again(self, rows: Mapping[str, tuple[str, ...]]) -> None:
        selected, top = self.selected, self.scroll_y
        self.clear()
        for key, cells in rows.items():
            self.add_row(*cells, key=key)
        if selected is not None and selected in rows:
            self.move_cursor(row=list(rows).index(selected), animate=False, scroll=False)
        self.scroll_to(y=top, animate=False)
