"""The help of the chat."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from llmd_tui.widgets.dialog import Dialog


class HelpDialog(Dialog[None]):
    """Shows a text."""

    DEFAULT_CSS = """
    HelpDialog VerticalScroll { height: auto; max-height: 60vh; margin-bottom: 1; }
    """

    def __init__(self, text: str) -> None:
        super().__init__("Commands of the chat")
        self._text = text

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)
