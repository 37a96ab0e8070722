"""Texts about one thing, each under a heading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from llmd_tui import actions
from llmd_tui.widgets.dialog import Dialog
from llmd_tui.widgets.live_text import LiveText
from llmd_tui.widgets.plain_text import printable


class Section(NamedTuple):
    """A text under a heading; an empty text is left out."""

    heading: str
    text: str


def as_text(sections: Sequence[Section]) -> Text:
    """Return the sections for the screen: a short text follows its heading, a long one is below it."""
    shown = Text()
    for heading, raw in sections:
        content = printable(raw).strip()
        if not content:
            continue
        if shown:
            shown.append("\n")
        shown.append(heading, "bold")
        shown.append(f"\n{content}\n" if "\n" in content else f"  {content}")
    return shown


class Details(VerticalScroll, can_focus=False):
    """A pane of sections."""

    DEFAULT_CSS = """
    Details {
        height: auto;
        padding: 0 2;
        border-top: solid $panel-lighten-1;
    }
    """

    def compose(self) -> ComposeResult:
        yield LiveText()

    def show(self, sections: Sequence[Section]) -> None:
        self.query_one(LiveText).show_text(as_text(sections))


class DetailsDialog(Dialog[None]):
    """Sections in a dialog that scrolls; ``y`` copies all of them."""

    DEFAULT_CSS = """
    DetailsDialog > Vertical {
        width: 94%;
        height: 94%;
        & > VerticalScroll {
            height: 1fr;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy")]

    def __init__(self, title: str, sections: Sequence[Section]) -> None:
        super().__init__(title)
        self._title = title
        self._content = as_text(sections)

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._content, markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_copy(self) -> None:
        """Copy everything that is shown."""
        self.app.post_message(actions.CopyText(self._content.plain, self._title))
