"""The frame of dialogs."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from llmd_tui.widgets.key_footer import KeyFooter
from llmd_tui.widgets.plain_text import printable

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None]):
    """A box in the middle of the screen with a title, and the keys at its bottom.

    Esc closes it without an answer.
    """

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > Vertical {
            width: 76;
            max-width: 96%;
            height: auto;
            max-height: 94%;
            padding: 1 2 0 2;
            border: round $primary;
            background: $surface;
        }
        .title {
            text-style: bold;
            margin-bottom: 1;
        }
        .text {
            height: auto;
            margin-bottom: 1;
        }
        .wrong {
            height: auto;
            text-style: bold;
            color: $text-error;
        }
        KeyFooter {
            dock: none;
            background: $surface;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield from self.compose_body()
            yield KeyFooter(with_palette=False)

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the title and the keys."""
        yield from ()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


def text(content: str) -> Static:
    """Return a paragraph of a dialog."""
    return Static(printable(content), classes="text", markup=False)
