"""A dialog with commands to type elsewhere, for what the daemon cannot be asked over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from llmd_tui import actions
from llmd_tui.widgets.dialog import Dialog, text
from llmd_tui.widgets.plain_text import one_line


class CommandDialog(Dialog[None]):
    """Commands, one a line; ``y`` or Enter copies the one under the cursor."""

    DEFAULT_CSS = """
    CommandDialog OptionList {
        height: auto;
        margin-bottom: 1;
        border: none;
        &:focus {
            border: none;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy")]

    def __init__(self, title: str, explanation: str, commands: Sequence[str]) -> None:
        super().__init__(title)
        self._explanation = explanation
        self._commands = tuple(map(one_line, commands))

    def compose_body(self) -> ComposeResult:
        yield text(self._explanation)
        yield OptionList(*self._commands, markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self) -> None:
        self.action_copy()

    def action_copy(self) -> None:
        """Copy the command under the cursor and close."""
        command = self._commands[self.query_one(OptionList).highlighted or 0]
        self.app.post_message(actions.CopyText(command, f"`{command}`"))
        self.dismiss(None)
