"""One message of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message as Posted
from textual.timer import Timer
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownFence, MarkdownStream

from llmd_tui import actions
from llmd_tui.screens.chat.attachments import chip
from llmd_tui.screens.chat.store.records import Call, Content, Message
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.words import ending_words, figures_line

UPDATES_PER_S = 20
"""A growing answer is shown at most this often."""


class MessageView(Vertical, can_focus=True):
    """A question, an answer, or the result of a tool. Its keys post `Wanted`.

    It changes nothing by itself but what is folded.
    """

    DEFAULT_CSS = """
    MessageView {
        height: auto;
        padding: 0 1;
        border-left: blank;

        &:focus { border-left: thick $primary; }
        &.found { border-left: double $warning; }
        &.dropped { opacity: 60%; }
        .head { text-style: bold; padding: 0; }
        Line { padding: 0; }
        .text { color: $foreground; }
        .reasoning { text-style: italic; }
        Markdown { padding: 0; margin: 0; height: auto; background: $background; }
        .foot { margin-bottom: 1; }
    }
    """
    BINDING_GROUP_TITLE = "The message"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "want('copy')", "Copy", id="chat.copy"),
        Binding("b", "want('copy_code')", "Copy code", id="chat.copy_code", show=False),
        Binding("e", "want('edit')", "Edit", id="chat.edit"),
        Binding("r", "want('regenerate')", "Regenerate", id="chat.regenerate_here"),
        Binding("c", "want('continue')", "Continue", id="chat.continue"),
        Binding("left", "want('previous')", "Branch", key_display="←→", id="chat.previous"),
        Binding("right", "want('next')", show=False, id="chat.next"),
        Binding("t", "fold", "Reasoning", id="chat.fold"),
        Binding("x,delete", "want('delete')", "Delete", id="chat.delete_branch"),
        Binding("o", "want('open')", "Open in editor", id="chat.open", show=False),
        Binding("up,k", "step(-1)", show=False),
        Binding("down,j", "step(1)", show=False),
    ]

    class Wanted(Posted):
        """Something is to be done with a message."""

        def __init__(self, action: str, message_id: int) -> None:
            super().__init__()
            self.action = action
            self.message_id = message_id

    class Stepped(Posted):
        """The cursor is to go to the next or the previous message."""

        def __init__(self, message_id: int, step: int) -> None:
            super().__init__()
            self.message_id = message_id
            self.step = step

    class Grown(Posted):
        """A growing answer shows more than before."""

    def __init__(
        self, message: Message, place: tuple[int, int], source: Callable[[], Content] | None = None
    ) -> None:
        """``place``: of the message among its siblings, and their number. ``source``: as for `follow`."""
        super().__init__()
        self.message = message
        self.place = place
        self._folded = True
        self._stream: MarkdownStream | None = None
        self._source = source
        self._timer: Timer | None = None
        self._shown = ""

    def compose(self) -> ComposeResult:
        yield Line(classes="head")
        yield Line(classes="chips")
        yield Line(classes="reasoning")
        if self.message.role == "assistant":
            yield Markdown("", open_links=False)
        else:
            yield Line(classes="text")
        yield Line(classes="calls")
        yield Line(classes="foot")

    async def on_mount(self) -> None:
        self._show_lines()
        if self._source is not None:
            self.follow(self._source)
        elif self.message.role == "assistant":
            await self._show_whole()

    @property
    def content(self) -> Content:
        return self.message.content

    def follow(self, source: Callable[[], Content]) -> None:
        """Show what ``source`` returns as it grows, until `finish`."""
        self._source = source
        if self._timer is None:
            self._timer = self.set_interval(1 / UPDATES_PER_S, self.show_growth)

    async def show_growth(self) -> None:
        """Show what has been added."""
        if self._source is None:
            return
        content = self._source()
        changed = content.text != self._shown or content.reasoning != self.content.reasoning
        self._take(content)
        markdown = self.query_one(Markdown)
        if content.text != self._shown:
            if self._stream is None:
                self._stream = Markdown.get_stream(markdown)
            await self._stream.write(content.text[len(self._shown) :])
            self._shown = content.text
        self._show_lines()
        if changed:
            self.post_message(self.Grown())

    async def finish(self, content: Content) -> None:
        """Show the answer as it is at its end."""
        await self.end_stream()
        self._take(content)
        self._show_lines()
        await self._show_whole()

    async def end_stream(self) -> None:
        """Show no more growth."""
        self._source = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        stream, self._stream = self._stream, None
        if stream is not None:
            # The end of a stream is the cancellation of its task, which must not end the caller too.
            await asyncio.gather(stream.stop(), return_exceptions=True)

    def show_place(self, place: tuple[int, int]) -> None:
        """Show the place among the siblings."""
        self.place = place
        self._show_lines()

    def action_want(self, action: str) -> None:
        self.post_message(self.Wanted(action, self.message.message_id))

    def action_step(self, step: int) -> None:
        self.post_message(self.Stepped(self.message.message_id, step))

    def action_fold(self) -> None:
        """Show or hide the reasoning."""
        if not self.content.reasoning:
            self.notify("This message has no reasoning.")
            return
        self._folded = not self._folded
        self._show_lines()

    def on_click(self, event: events.Click) -> None:
        """Copy the code block that was clicked, or the message whose head was clicked."""
        if self.screen.get_selected_text() or event.widget is None:
            return
        for widget in event.widget.ancestors_with_self:
            if isinstance(widget, MarkdownFence):
                self.post_message(actions.CopyText(widget.code, "the code block"))
                return
            if isinstance(widget, Line) and widget.has_class("head"):
                self.action_want("copy")
                return
            if isinstance(widget, Line) and widget.has_class("reasoning"):
                self.action_fold()
                return

    @on(Markdown.LinkClicked)
    def copy_link(self, event: Markdown.LinkClicked) -> None:
        """Copy a link: a browser on this machine may be far from the person."""
        self.post_message(actions.CopyText(event.href, "the link"))

    async def _show_whole(self) -> None:
        self._shown = self.content.text
        await self.query_one(Markdown).update(self.content.text)

    def _take(self, content: Content) -> None:
        self.message = msgspec.structs.replace(self.message, content=content)

    def _show_lines(self) -> None:
        content = self.content
        self._line("head", self._head())
        self._line("chips", "\n".join(f"+ {chip(one)}" for one in content.attachments))
        self._line("reasoning", reasoning_words(content, folded=self._folded))
        if self.message.role == "assistant":
            self._line("calls", "\n".join(call_words(call) for call in content.calls))
        else:
            self._line("text", content.text)
        running = self._source is not None
        figures = (
            figures_line(content.figures) if content.figures and self.message.role == "assistant" else ""
        )
        ending = "" if running else ending_words(content)
        self._line("foot", "\n".join(part for part in (ending and f"✗ {ending}", figures) if part))

    def _line(self, name: str, text: str) -> None:
        self.query_one(f".{name}", Line).say(text)

    def _head(self) -> str:
        place, number = self.place
        branch = f"  ‹ {place}/{number} ›" if number > 1 else ""
        heads = {"user": "You", "assistant": "Answer"}
        head = heads.get(self.message.role) or f"Result of {self.content.calls[0].name}"
        return head + branch


def reasoning_words(content: Content, *, folded: bool) -> str:
    """Return the reasoning, or how long it is."""
    if not content.reasoning:
        return ""
    if folded:
        return f"▸ reasoning, {len(content.reasoning.split())} words (t shows it)"
    return f"▾ reasoning (t hides it)\n{content.reasoning.strip()}\n"


def call_words(call: Call) -> str:
    """Return a call of a tool with its arguments on lines of their own."""
    try:
        arguments = msgspec.json.format(call.arguments.encode(), indent=2).decode()
    except (msgspec.DecodeError, ValueError):
        arguments = call.arguments  # not whole yet, or not JSON
    return f"⚙ {call.name}\n{arguments}"
