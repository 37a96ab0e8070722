"""The field to search in a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message as Posted
from textual.widgets import Input, Label

from llmd_tui.screens.chat.find import Finder
from llmd_tui.screens.chat.store.records import Message


class FindBar(Horizontal):
    """Enter and up go to the next older message that has all words, down to the next newer one."""

    DEFAULT_CSS = """
    FindBar {
        height: 1;
        background: $panel;
        Input { width: 1fr; }
        Label { width: auto; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "Older"),
        Binding("down", "step(1)", "Newer"),
    ]

    class Stepped(Posted):
        """Another message that has the words is to be shown."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.display = False
        self._finder = Finder((), "")

    def compose(self) -> ComposeResult:
        yield Input(placeholder="find in this chat", compact=True)
        yield Label("", markup=False)

    def open(self, words: str = "") -> None:
        """Show the field; with words, search for them at once."""
        self.display = True
        field = self.query_one(Input)
        field.focus()
        if words:
            field.value = words
            self.action_step(-1)

    def found(self, path: Sequence[Message], step: int) -> int | None:
        """Return another message that has the words; None if there is none."""
        words = self.query_one(Input).value
        if not self._finder.is_of(path, words):
            self._finder = Finder(path, words)
        found = self._finder.step(step)
        self.query_one(Label).update(self._finder.words)
        return found

    def action_step(self, step: int) -> None:
        self.post_message(self.Stepped(step))

    @on(Input.Submitted)
    def submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_step(-1)

    @on(Input.Changed)
    def keep(self, event: Input.Changed) -> None:
        event.stop()
