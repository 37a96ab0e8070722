"""A dialog that asks a question with a few answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button

from llmd_tui.widgets.dialog import Dialog, text


class Option(NamedTuple):
    """An answer."""

    value: str
    label: str
    """Its first letter is its key."""
    is_destructive: bool = False


class Choice(Dialog[str]):
    """Asks a question. The answer is the value of an option; None if the dialog was closed.

    The first option has the focus, so it should be the harmless one.
    """

    DEFAULT_CSS = """
    Choice {
        Horizontal {
            height: auto;
            margin-bottom: 1;
        }
        Button {
            margin-right: 2;
        }
    }
    """

    def __init__(self, title: str, question: str, options: Sequence[Option]) -> None:
        super().__init__(title)
        self._question = question
        self._options = options

    def compose_body(self) -> ComposeResult:
        yield text(self._question)
        with Horizontal():
            yield from self._buttons()

    def on_mount(self) -> None:
        for option in self._options:
            key = option.label[0].lower()
            self._bindings.bind(key, f"choose({option.value!r})", option.label)
        self.query(Button).first().focus()
        self.refresh_bindings()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.name)

    def action_choose(self, value: str) -> None:
        self.dismiss(value)

    def _buttons(self) -> Iterator[Button]:
        for option in self._options:
            variant: Literal["error", "default"] = "error" if option.is_destructive else "default"
            yield Button(option.label, name=option.value, variant=variant, compact=True)


def confirmation(
    title: str, question: str, *, yes: str, no: str = "Cancel", is_destructive: bool = True
) -> Choice:
    """Return a question that is answered with ``yes`` or nothing."""
    return Choice(title, question, [Option("", no), Option("yes", yes, is_destructive)])
