"""The line at the top: the screens with their keys, the daemon, and what it does now."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual import events
from textual.widget import Widget

from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.state.follower import Status
from llmd_tui.widgets.words import share

SYMBOLS = {"connected": "●", "connecting": "◌", "lost": "✗", "refused": "○"}
WITHOUT_FIGURES: Mapping[Status, str] = {
    "connecting": "connecting",
    "lost": "no connection",
    "refused": "may not manage",
}
NARROW = 100
"""Columns below which the daemon's address is left out, and names of screens are closer together."""


class StatusLine(Widget):
    """One line; a second one says what is wrong, if something is."""

    DEFAULT_CSS = """
    StatusLine {
        height: auto;
        background: $panel;
        color: $foreground;
        padding-left: 1;
    }
    """

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._current = screen_name
        self._figures: tuple[str, ...] = ()
        self._address = ""
        self._status: Status = "connecting"
        self._failure = ""

    def show(self, state: DaemonState, *, status: Status, address: str, failure: str) -> None:
        """Show the figures of a state; ``failure`` is in words, or empty."""
        figures = _figures(state) if status == "connected" else (WITHOUT_FIGURES[status],)
        shown = (figures, address, status, failure)
        if shown != (self._figures, self._address, self._status, self._failure):
            lines = bool(failure) != bool(self._failure)
            self._figures, self._address, self._status, self._failure = shown
            self.refresh(layout=lines)

    def render(self) -> Text:
        line = self._names()
        room = self.size.width - line.cell_len - 1
        right = f"{SYMBOLS[self._status]} {self._figures[0] if self._figures else ''}"
        space = " " if self._is_narrow else "  "
        for figure in self._figures[1:]:
            right += f"{space}{figure}" if len(f"{right}{space}{figure}") <= room else ""
        if not self._is_narrow and len(right) + len(self._address) + 3 <= room:
            right = f"{self._address}  {right}"
        line.append(" " * (1 + room - len(right)) + right)
        line.truncate(self.size.width)
        if self._failure:
            line.append(f"\n{self._failure}", "bold")
        return line

    def on_click(self, event: events.Click) -> None:
        """Open the screen whose name was clicked."""
        column = self.styles.padding.left
        for key, name in enumerate(self._screens, start=1):
            column += len(self._title(key, name))
            if event.x < column:
                self.app.open_screen(name)  # type: ignore[attr-defined]
                return

    @property
    def _screens(self) -> tuple[str, ...]:
        return tuple(self.app.screen_names)  # type: ignore[attr-defined]

    def _names(self) -> Text:
        line = Text(no_wrap=True)
        for key, name in enumerate(self._screens, start=1):
            title = self._title(key, name)
            space = len(title) - len(title.lstrip()) if self._is_narrow else 0
            line.append(title[:space])
            line.append(title[space:], "reverse bold" if name == self._current else "")
        return line

    def _title(self, key: int, name: str) -> str:
        written = f" {key} {name.capitalize() if len(name) > 2 else name.upper()}"
        return written if self._is_narrow else f"{written} "

    @property
    def _is_narrow(self) -> bool:
        return self.outer_size.width < NARROW


def _figures(state: DaemonState) -> tuple[str, ...]:
    """Return the figures in the order in which they are kept where there is little room."""
    found = [f"{state.tokens_per_s:.0f} tok/s"]
    if waiting := state.waiting_last:
        found.append(f"{waiting} waiting")
    if state.kv_usage is not None:
        found.append(f"KV {share(state.kv_usage)}")
    return tuple(found)
