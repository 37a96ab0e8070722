"""A line that takes no room while it has nothing to say."""

from __future__ import annotations

from typing import Any

from textual.widgets import Static


class Line(Static):
    """Plain text on as many lines as it needs."""

    DEFAULT_CSS = """
    Line {
        height: auto;
        padding: 0 1;
        color: $text-muted;
    }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("", markup=False, **options)
        self.display = False

    def say(self, text: str) -> None:
        """Show a text; an empty one hides the line."""
        self.display = bool(text)
        self.update(text)
