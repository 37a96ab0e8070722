"""A figure over time as a small graph with its newest value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from rich.segment import Segment
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from llmd_tui.state.history import shortened

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"


def columns_of(values: Sequence[float | None], top: float, rows: int, marks: str = BLOCKS) -> list[str]:
    """Return the rows of a graph from the top down; ``top`` is the value of a full column.

    A gap stays empty; zero gets the smallest mark, so that it differs from a gap.
    """
    steps = len(marks) - 1
    heights = [_height(value, top, rows * steps) for value in values]
    lines = []
    for row in reversed(range(rows)):
        filled = [min(max(height - row * steps, 0), steps) for height in heights]
        lines.append("".join(marks[count] for count in filled))
    return lines


def _height(value: float | None, top: float, full: int) -> int:
    if value is None:
        return 0
    return max(1, min(round(value / top * full), full)) if top > 0 else 1


class Graph(Widget):
    """A title with the newest value, and below it the values, newest at the right."""

    DEFAULT_CSS = """
    Graph {
        height: 3;
        width: 1fr;
        padding: 0 1;
        color: $text-primary;
    }
    """

    def __init__(self, title: str, written: Callable[[float], str], *, top: float | None = None) -> None:
        """``written`` puts a value in words; ``top`` is the value of a full column, None: the largest one."""
        super().__init__()
        self._title = title
        self._written = written
        self._top = top
        self._values: Sequence[float | None] = ()
        self._lines: list[Text] = []
        self._drawn_with = BLOCKS

    def show(self, values: Sequence[float | None]) -> None:
        """Show values, oldest first; a gap is None. Only lines that have changed are drawn again."""
        if values == self._values and self._drawn_with == self._marks():
            return
        self._values = values
        before, self._lines = self._lines, self._drawn()
        for y, (old, new) in enumerate(zip_longest(before, self._lines)):
            if old != new:
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        style = self.rich_style
        if y >= len(self._lines):
            return Strip.blank(self.size.width, style)
        pieces = self._lines[y].render(self.app.console, end="")
        return Strip(Segment.apply_style(pieces, style)).adjust_cell_length(self.size.width, style)

    def on_resize(self) -> None:
        self._lines = self._drawn()
        self.refresh()

    def _drawn(self) -> list[Text]:
        width, rows = self.size.width, max(self.size.height - 1, 1)
        known = [value for value in self._values if value is not None]
        newest = self._written(known[-1]) if known else "-"
        title = Text.assemble((f"{self._title} ", "dim"), (newest, "bold"))
        most = f"  most {self._written(max(known))}" if known and self._top is None else ""
        if title.cell_len + len(most) <= width:
            title.append(most, "dim")
        title.truncate(width, overflow="ellipsis")
        top = self._top or max(known, default=0.0)
        self._drawn_with = self._marks()
        lines = columns_of(shortened(self._values, width), top, rows, self._drawn_with)
        return [title, *(Text(line) for line in lines)]

    def _marks(self) -> str:
        return ASCII if "-ascii" in self.app.classes else BLOCKS
