"""The messages of the branch that is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message as Posted
from textual.widgets import Static

from llmd_tui.screens.chat.store.records import Content, Message
from llmd_tui.screens.chat.tree import Tree
from llmd_tui.screens.chat.widgets.line import Line
from llmd_tui.screens.chat.widgets.message_view import MessageView

Growing = Callable[[int], Callable[[], Content] | None]
"""Returns what says how far the answer in a message is; None if it is not being written."""
SHOWN = 40
"""Messages that are shown at first: each takes time to lay out. The key ``up`` at the first shows more."""
EMPTY = (
    "Write a message and press Enter. A line that begins with / is a command: /help lists them.\n"
    "Tab leaves the prompt, so that digits open other screens; Ctrl-P lists everything."
)


class Conversation(Vertical):
    """Scrolls to the end as an answer grows, but only while the end is in view."""

    DEFAULT_CSS = """
    Conversation {
        #messages { height: 1fr; }
        #new { height: 1; text-align: right; color: $text-primary; text-style: bold; padding: 0 2; }
        #empty { padding: 1 2; color: $text-muted; }
    }
    """

    class Left(Posted):
        """The cursor went down from the last message."""

    def __init__(self, growing: Growing = lambda _: None, **options: Any) -> None:
        super().__init__(**options)
        self._growing = growing
        self._changing = asyncio.Lock()  # two changes at a time would both add what is missing
        self._tree = Tree()
        self._first_sent: int | None = None
        self._limit = SHOWN
        self._has_grown = False
        """Whether something was added below what is in view."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="messages", can_focus=False):
            yield Static(EMPTY, id="empty", markup=False)
            yield Line(id="earlier")
        mark = Static("↓ new", id="new", markup=False)
        mark.display = False
        yield mark

    @property
    def views(self) -> list[MessageView]:
        """The messages that are shown, oldest first."""
        return list(self.query(MessageView))

    async def show(self, tree: Tree, first_sent: int | None) -> None:
        """Show the branch of a tree; what is shown already stays."""
        if tree is not self._tree:
            self._limit = SHOWN
        self._tree, self._first_sent = tree, first_sent
        async with self._changing:
            await self._show_branch()

    def view(self, message_id: int) -> MessageView | None:
        """Return what shows a message; None if it is not shown."""
        return next((one for one in self.views if one.message.message_id == message_id), None)

    async def finish(self, message_id: int, content: Content) -> None:
        """Show an answer as it is at its end."""
        async with self._changing:
            view = self.view(message_id)
            if view is not None:
                await view.finish(content)

    def go_to_end(self) -> None:
        """Show the end, and keep showing it as it moves."""
        self._messages.anchor()
        self._has_grown = False
        self._look_later()

    def focus_last(self) -> None:
        """Put the cursor on the last message."""
        if views := self.views:
            views[-1].focus()

    async def step(self, message_id: int, step: int) -> None:
        """Put the cursor on the next or the previous message."""
        ids = [one.message.message_id for one in self.views]
        place = ids.index(message_id) + step
        if place < 0 and len(ids) < len(self._tree.path()):
            self._limit += SHOWN
            await self.show(self._tree, self._first_sent)
            await self.step(message_id, step)
        elif place >= len(ids):
            self.post_message(self.Left())
        else:
            self.views[max(place, 0)].focus()

    async def reveal(self, message_id: int, *, found: bool = False) -> None:
        """Show a message of the branch, and mark it as ``found`` or put the cursor on it."""
        if self.view(message_id) is None:
            self._limit = len(self._tree)
            await self.show(self._tree, self._first_sent)
        self.query(".found").remove_class("found")
        view = self.view(message_id)
        if view is not None and found:
            view.add_class("found")
            self._messages.scroll_to_widget(view, animate=False)
        elif view is not None:
            view.focus()

    @on(MessageView.Stepped)
    async def step_from(self, event: MessageView.Stepped) -> None:
        event.stop()
        await self.step(event.message_id, event.step)

    @on(MessageView.Grown)
    def mark_growth(self) -> None:
        self._has_grown = True
        self._look_later()

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and event.widget.id == "new":
            self.go_to_end()

    def on_mount(self) -> None:
        for moved in ("scroll_y", "virtual_size"):
            self.watch(self._messages, moved, self._look_later)

    def on_resize(self) -> None:
        self._look_later()

    @property
    def _messages(self) -> VerticalScroll:
        return self.query_one("#messages", VerticalScroll)

    def _look_later(self) -> None:
        # Only then is it known how far it scrolls, and whether it still follows the end.
        self.call_after_refresh(self._show_mark)

    def _show_mark(self) -> None:
        """Mark what was added below, until the end is in view."""
        messages = self._messages
        # If all is in view, an anchored container has a negative offset; that is no end for Textual.
        is_end_in_view = messages.is_vertical_scroll_end or not messages.max_scroll_y
        self._has_grown = self._has_grown and not is_end_in_view
        self.query_one("#new").display = self._has_grown

    def _show_notes(self, hidden: int) -> None:
        self.query_one("#empty").display = not len(self._tree)
        self.query_one("#earlier", Line).say(f"↑ {hidden} earlier messages" if hidden else "")

    async def _show_branch(self) -> None:
        """Show the branch as it is now: it may have changed while an earlier change was shown."""
        tree, first_sent = self._tree, self._first_sent
        path = tree.path()[-self._limit :]
        await self._replace(path)
        for view in self.views:
            view.show_place(tree.place(view.message.message_id))
            dropped = first_sent is not None and view.message.message_id < first_sent
            view.set_class(dropped, "dropped")
        self._show_notes(len(tree.path()) - len(path))

    async def _replace(self, path: Sequence[Message]) -> None:
        """Keep the views that the path begins with, remove the others, and add those that are missing."""
        views = self.views
        kept = _alike(views, path)
        for view in views[:kept]:
            if source := self._growing(view.message.message_id):
                view.follow(source)
        for view in views[kept:]:
            await view.end_stream()
        added = [self._made(one) for one in path[kept:]]
        with self.app.batch_update():
            await self._messages.mount_all(added)
            self._keep_cursor(views[kept:], [*views[:kept], *added], kept)
            await self._messages.remove_children(views[kept:])

    def _keep_cursor(self, removed: Sequence[MessageView], views: Sequence[MessageView], place: int) -> None:
        """Move the cursor from a message that goes: Textual would put it on the list of chats, where the
        next key might delete a chat.
        """
        if views and any(view.has_focus or view.has_focus_within for view in removed):
            self.screen.set_focus(views[min(place, len(views) - 1)])  # `focus` would wait for a turn

    def _made(self, message: Message) -> MessageView:
        place = self._tree.place(message.message_id)
        return MessageView(message, place, self._growing(message.message_id))


def _alike(views: Sequence[MessageView], path: Sequence[Message]) -> int:
    """Return how many messages at the beginning are shown already, as they are."""
    pairs = zip(views, path, strict=False)
    different = (
        place for place, (view, one) in enumerate(pairs) if view.message.message_id != one.message_id
    )
    return next(different, min(len(views), len(path)))
