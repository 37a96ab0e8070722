"""A map of the blocks of a KV pool."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget

from llmd_tui.screens.kv.blocks import STATES, Group, blocks_per_cell, cells
from llmd_tui.widgets.words import share

MARKS = {"free": "·", "cached": "░", "used": "▓", "shared": "█"}
ASCII = {"free": ".", "cached": "c", "used": "u", "shared": "S"}


class BlockMap(Widget):
    """A mark for every block, or for every few of them.

    *cached*: only the prefix cache keeps it; *used*: one sequence does; *shared*: several do.
    """

    DEFAULT_CSS = """
    BlockMap {
        height: 1fr;
        padding: 0 1;
        color: $text-primary;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._group: Group | None = None
        self._marks = MARKS

    def show(self, group: Group | None) -> None:
        """Show a group; None: there is none."""
        marks = ASCII if "-ascii" in self.app.classes else MARKS
        if (group, marks) != (self._group, self._marks):
            self._group, self._marks = group, marks
            self.refresh()

    def render(self) -> Text:
        group = self._group
        if group is None:
            return Text("No loaded model has a KV cache.", "dim")
        marks = self._marks
        width, rows = self.size.width, max(self.size.height - 3, 1)
        legend = Text("   ").join(Text(f"{marks[state]} {group.count(state)} {state}") for state in STATES)
        size = blocks_per_cell(group.blocks, width * rows)
        taken = share(1 - group.free / group.blocks) if group.blocks else "0%"
        means = "A mark is one block" if size == 1 else f"A mark is {size} blocks"
        head = Text(f"{means} of {group.block_len} tokens; {taken} of {group.blocks} hold something.", "dim")
        line = "".join(marks[state] for state in cells(group, width * rows))
        lines = [Text(line[start : start + width]) for start in range(0, len(line), width)]
        return Text("\n").join([legend, head, Text(), *lines])
