"""The line at the top: the screens with their keys, the daemon, and what it does now."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.widget import Widget

from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.state.follower import Status
from llmd_tui.widgets.words import share

SYMBOLS = {"connected": "●", "connecting": "◌", "lost": "✗"}
NARROW = 100
"""Columns below which the daemon's address is left out."""


class StatusLine(Widget):
    """One line; a second one says what is wrong, if something is."""

    DEFAULT_CSS = """
    StatusLine {
        height: auto;
        background: $panel;
        color: $foreground;
        padding: 0 1;
    }
    """

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._current = screen_name
        self._figures = ""
        self._address = ""
        self._status: Status = "connecting"
        self._failure = ""

    def show(self, state: DaemonState, *, status: Status, address: str, failure: str) -> None:
        """Show the figures of a state; ``failure`` is in words, or empty."""
        figures = f"{state.tokens_per_s:.0f} tok/s"
        if state.kv_usage is not None:
            figures += f"  KV {share(state.kv_usage)}"
        if state.waiting:
            figures += f"  {state.waiting} waiting"
        shown = (figures, address, status, failure)
        if shown != (self._figures, self._address, self._status, self._failure):
            lines = bool(failure) != bool(self._failure)
            self._figures, self._address, self._status, self._failure = shown
            self.refresh(layout=lines)

    def render(self) -> Text:
        names = list(self.app.screen_names)  # type: ignore[attr-defined]
        line = Text(no_wrap=True, overflow="ellipsis")
        for key, name in enumerate(names, start=1):
            style = "reverse bold" if name == self._current else ""
            line.append(f" {key} {name.capitalize() if len(name) > 2 else name.upper()} ", style)
        right = f"{SYMBOLS[self._status]} {self._figures}"
        room = self.size.width - line.cell_len - len(right)
        if self.size.width >= NARROW and room > len(self._address) + 2:
            right = f"{self._address}  {right}"
            room -= len(self._address) + 2
        line.append(" " * max(room, 1) + right)
        if self._failure:
            line.append(f"\n{self._failure}", "bold")
        return line

    def on_click(self, event: events.Click) -> None:
        """Open the screen whose name was clicked."""
        column = 0
        for name in self.app.screen_names:  # type: ignore[attr-defined]
            column += len(name) + 4
            if event.x < column:
                self.app.open_screen(name)  # type: ignore[attr-defined]
                return
