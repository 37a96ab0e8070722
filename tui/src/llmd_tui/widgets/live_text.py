"""A text that often changes, at little cost."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.widgets import Static


class LiveText(Static):
    """Draws only itself again when its text changes, as long as that has as many lines as before.

    `Static.update` has the whole screen arranged and drawn again, each time: that was more than half of what
    the monitor cost.
    """

    DEFAULT_CSS = """
    LiveText {
        height: auto;
    }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("", markup=False, **options)
        self._shown: str | Text = ""
        self._num_lines: int | None = None

    def show_text(self, text: str | Text) -> None:
        """Show a text; nothing happens if it is shown already."""
        if text == self._shown:
            return
        self._shown = text
        self.update(text, layout=False)
        num_lines = self.get_content_height(self.container_size, self.app.size, self.content_size.width)
        if num_lines != self._num_lines:
            self._num_lines = num_lines
            self.refresh(layout=True)
