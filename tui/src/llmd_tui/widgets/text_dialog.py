"""A dialog that asks for a line of text."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button, Input, Static

from llmd_tui.widgets.dialog import Dialog, text


class TextDialog(Dialog[str]):
    """Asks for a text. The answer has no spaces around it; None if the dialog was closed."""

    DEFAULT_CSS = """
    TextDialog {
        Horizontal {
            height: auto;
            margin-bottom: 1;
        }
        Button {
            margin-right: 2;
        }
    }
    """

    def __init__(
        self, title: str, hint: str, *, value: str = "", fault: Callable[[str], str] = lambda _: ""
    ) -> None:
        """``fault`` returns in words why a text is refused, or an empty string."""
        super().__init__(title)
        self._hint = hint
        self._value = value
        self._fault = fault

    def compose_body(self) -> ComposeResult:
        yield text(self._hint)
        yield Input(self._value)
        yield Static(classes="wrong", markup=False)
        with Horizontal():
            yield Button("OK", name="ok", compact=True)
            yield Button("Cancel", name="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Button.Pressed)
    def press(self, event: Button.Pressed) -> None:
        if event.button.name == "ok":
            self.accept()
        else:
            self.dismiss(None)

    @on(Input.Submitted)
    def accept(self) -> None:
        """Answer with the text, or say what is wrong with it."""
        value = self.query_one(Input).value.strip()
        fault = self._fault(value) if value else "type a name, or press Esc"
        if fault:
            self.query_one(".wrong", Static).update(fault)
        else:
            self.dismiss(value)
