"""Where a message is written: its attachments, the prompt, completions, and how full the context is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TextArea

from llmd_tui.screens.chat.attachments import chip
from llmd_tui.screens.chat.slash_commands import COMMANDS, completed, completions
from llmd_tui.screens.chat.store.records import Attachment, Content
from llmd_tui.screens.chat.widgets.gauge import Gauge
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.prompt import Prompt

HINTS_SHOWN = 8


class Composer(Vertical):
    """Posts `Changed` with every change of the draft."""

    DEFAULT_CSS = """
    Composer {
        height: auto;
        #progress { color: $foreground; text-style: bold; }
        #chips { text-style: bold; }
    }
    """

    class Changed(Message):
        """The draft is another one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._attachments: list[Attachment] = []
        self._note = ""
        self.models: Sequence[str] = ()
        """Names that ``/model`` completes."""
        self.saved: Sequence[str] = ()
        """Names that ``/load`` completes."""

    def compose(self) -> ComposeResult:
        yield Line(id="progress")
        yield Line(id="note")
        yield Line(id="chips")
        yield Prompt(id="prompt", placeholder="Message, or / for commands")
        yield Line(id="hints")
        yield Gauge(id="gauge")

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def gauge(self) -> Gauge:
        return self.query_one(Gauge)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(self._attachments)

    def draft(self) -> Content | None:
        """Return the message that Enter would send; None: there is none, or it is a command."""
        text = self.prompt.text
        if text.startswith("/") or not (text.strip() or self._attachments):
            return None
        return Content(text, attachments=self.attachments)

    def edit(self, content: Content) -> None:
        """Take in a message, to write another version of it."""
        self.clear()
        self.attach(*content.attachments)
        self.note("Editing a message: Enter sends it as a branch, Esc leaves it as it was")
        self.prompt.begin(content.text)

    def attach(self, *attachments: Attachment) -> None:
        """Send texts with the next message."""
        self._attachments.extend(attachments)
        self._show_chips()

    @on(Prompt.Emptied)
    def detach(self, event: Prompt.Emptied) -> None:
        """Remove the last attachment."""
        event.stop()
        if self._attachments:
            self._attachments.pop()
            self._show_chips()

    def clear(self) -> None:
        """Forget text and attachments."""
        self.prompt.text = ""
        self.clear_attachments()

    def clear_attachments(self) -> None:
        """Forget the attachments, and what the message was to be."""
        self._attachments.clear()
        self.note("")
        self._show_chips()

    def note(self, text: str) -> None:
        """Say above the prompt what its next message is, such as the edit of another one."""
        if text != self._note:
            self._note = text
            self.query_one("#note", Line).say(text)

    def progress(self, text: str) -> None:
        """Say how far the answer is."""
        self.query_one("#progress", Line).say(text)

    def offers(self) -> list[str]:
        """Return the prompts that complete this one."""
        return completions(self.prompt.text, self.models, self.saved)

    @on(TextArea.Changed)
    def show_hints(self, event: TextArea.Changed) -> None:
        event.stop()
        self.query_one("#hints", Line).say(self._hints())
        self.post_message(self.Changed())

    @on(Prompt.CompletionWanted)
    def complete(self, event: Prompt.CompletionWanted) -> None:
        event.stop()
        self.prompt.write(completed(self.prompt.text, self.offers()))

    def _hints(self) -> str:
        """Return the completions; of a command that is complete, what it does."""
        text = self.prompt.text
        offers = self.offers()
        command: Any = COMMANDS.get(text[1:].partition(" ")[0]) if text.startswith("/") else None
        if command is not None and (len(offers) < 2 or " " not in text):
            return f"{command.argument}  {command.help}".strip()
        shown = [offer.rpartition(" ")[2] if " " in text else offer for offer in offers[:HINTS_SHOWN]]
        more = f"  and {len(offers) - HINTS_SHOWN} more" if len(offers) > HINTS_SHOWN else ""
        return f"Tab: {'  '.join(shown)}{more}" if shown else ""

    def _show_chips(self) -> None:
        chips = "  ".join(f"+ {chip(one)}" for one in self._attachments)
        self.query_one("#chips", Line).say(
            f"{chips}  (Backspace in an empty prompt removes)" if chips else ""
        )
        self.post_message(self.Changed())
