"""The help of the chat."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from llmd_tui.screens.chat.widgets.dialogs import Dialog


class HelpDialog(Dialog[None]):
    """Shows a text."""

    DEFAULT_CSS = """
    HelpDialog #box VerticalScroll { height: auto; max-height: 20; }
    """

    def __init__(self, text: str) -> None:
        super().__init__("Commands of the chat")
        self._text = text

    def compose_box(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)
