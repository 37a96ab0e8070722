"""The field in which a message is written."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from llmd_tui.screens.chat.attachments import LONG_PASTE
from llmd_tui.screens.chat.prompt_history import PromptHistory

BLURRED = "Esc: write here"
"""Says that what is typed is not text now."""


class Prompt(TextArea):
    """Grows with its text up to a limit. Enter sends; up and down at the edges show earlier messages."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 3;
        max-height: 10;
        border: round $border-blurred;
        background: $background;

        &:focus { border: round $border; }
        & .text-area--cursor-line { background: transparent; }
    }
    """
    BINDING_GROUP_TITLE = "The prompt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="chat.send"),
        Binding("ctrl+j,shift+enter", "break_line", "New line", id="chat.break", show=False),
        Binding("tab", "complete", "Go to the messages; complete a command", id="chat.complete", show=False),
    ]

    class Sent(Message):
        """A message is to be sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class CompletionWanted(Message):
        """Tab was pressed in a command."""

    class Left(Message):
        """Tab was pressed where there is no command to complete."""

    class Emptied(Message):
        """Backspace was pressed in an empty prompt."""

    class LongPaste(Message):
        """A long text was pasted."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, **options: Any) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, **options)
        self.asked = PromptHistory()
        """Earlier messages."""

    def write(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def begin(self, text: str) -> None:
        """Put a text into the prompt that is to be completed."""
        self.write(text)
        self.focus()

    def action_send(self) -> None:
        """Give the text away: what is typed from now on belongs to the next message."""
        text = self.text
        if text.strip():
            self.text = ""
            self.asked.add(text)
            self.post_message(self.Sent(text))

    def give_back(self, text: str) -> None:
        """Take a text back that could not be sent."""
        self.write(f"{text}\n{self.text}" if self.text else text)

    def on_focus(self) -> None:
        self.border_subtitle = ""

    def on_blur(self) -> None:
        self.border_subtitle = BLURRED

    def action_break_line(self) -> None:
        self.insert("\n")

    def action_complete(self) -> None:
        if self.text.startswith("/"):
            self.post_message(self.CompletionWanted())
        else:
            self.post_message(self.Left())

    def action_delete_left(self) -> None:
        if self.text:
            super().action_delete_left()
        else:
            self.post_message(self.Emptied())

    def action_cursor_up(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - as in its base
        if not select and self.cursor_at_first_line:
            older = self.asked.older(self.text)
            if older is not None:
                self.write(older)
                return
        super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - as in its base
        if not select and self.cursor_at_last_line:
            newer = self.asked.newer()
            if newer is not None:
                self.write(newer)
                return
        super().action_cursor_down(select)

    async def _on_key(self, event: events.Key) -> None:
        # A binding with priority would overtake the keys before it.
        if event.key == "enter":
            event.prevent_default()
            event.stop()
            self.action_send()

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) > LONG_PASTE:
            event.prevent_default()
            event.stop()
            self.post_message(self.LongPaste(event.text))
