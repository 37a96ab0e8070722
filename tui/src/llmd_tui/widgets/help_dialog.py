"""A text that helps."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from llmd_tui.widgets.dialog import Dialog


class HelpDialog(Dialog[None]):
    """Shows a text; the key that opens the help also closes it."""

    DEFAULT_CSS = """
    HelpDialog VerticalScroll { height: auto; max-height: 60vh; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1,q", "close", show=False)]

    def __init__(self, title: str, text: str | Text) -> None:
        super().__init__(title)
        self._text = text

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, markup=False)
