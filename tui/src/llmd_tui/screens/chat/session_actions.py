"""What the keys of the list of chats do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Session
from llmd_tui.screens.chat.widgets.dialogs import AskLine, Confirm

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen


async def pin(screen: ChatScreen, session: Session) -> None:
    """Keep a chat at the top of the list, or no longer."""
    await _change(screen, session, pinned=not session.pinned)


async def archive(screen: ChatScreen, session: Session) -> None:
    """Move a chat to the archive or back."""
    await _change(screen, session, archived=not session.archived)
    screen.say("Back among the chats." if session.archived else "Archived; v shows the archive.")


async def rename(screen: ChatScreen, session: Session) -> None:
    """Give a chat another title."""
    title = await screen.ask(AskLine("Title of the chat", session.title))
    if title:
        await _change(screen, session, title=title)


async def delete(screen: ChatScreen, session: Session) -> None:
    """Delete a chat for good."""
    if not await screen.ask(Confirm("Delete", f"Delete the chat “{session.name}” for good?")):
        return
    is_open = session.session_id == screen.chat.session.session_id
    screen.sending.stop(session.session_id)
    await screen.store.call(ChatStore.delete, session.session_id)
    if is_open:
        await screen.open_new()
    await screen.list_sessions()


async def _change(screen: ChatScreen, session: Session, **changes: object) -> None:
    if session.session_id == screen.chat.session.session_id:
        await screen.chat.change(**changes)
    else:
        await screen.store.call(ChatStore.change, session.session_id, **changes)
    await screen.list_sessions()


ACTIONS: Mapping[str, Callable[[ChatScreen, Session], Awaitable[None]]] = {
    "pin": pin,
    "archive": archive,
    "rename": rename,
    "delete": delete,
}
