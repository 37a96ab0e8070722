"""How much of the context is used."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.widget import Widget

from llmd_tui.screens.chat.room import Room, room_words
from llmd_tui.widgets.bars import plain_bar

BAR = 12
"""Cells of the bar."""


class Gauge(Widget):
    """A bar and its figures, with the model and the settings of the chat in front of it."""

    DEFAULT_CSS = """
    Gauge {
        height: 1;
        padding: 0 1;
        color: $text-muted;
    }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._room: Room | None = None
        self._about = ""

    def show(self, room: Room | None) -> None:
        """Show how full the context is; None: it is not known."""
        self._room = room
        self.refresh()

    def describe(self, about: str) -> None:
        """Show the model and settings."""
        self._about = about
        self.refresh()

    def render(self) -> Text:
        line = Text(self._about, no_wrap=True, overflow="ellipsis")
        right = self._right()
        room = self.size.width - line.cell_len - len(right)
        if room < 1 and right:
            line.truncate(max(self.size.width - len(right) - 1, 0), overflow="ellipsis")
            room = max(self.size.width - line.cell_len - len(right), 0)
        line.append(" " * room)
        over = self._room is not None and self._room.is_over
        line.append(right, "bold" if over else "")
        return line

    def _right(self) -> str:
        if self._room is None:
            return ""
        words = room_words(self._room)
        if self._room.window is None or len(words) + BAR + 1 > self.size.width:
            return words
        return f"{plain_bar(self._room.share, BAR, ascii_only='-ascii' in self.app.classes)} {words}"
