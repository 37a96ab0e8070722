"""What the keys of a message do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from llmd_tui.screens.chat.code_blocks import code_blocks
from llmd_tui.screens.chat.editor import edited_outside
from llmd_tui.screens.chat.store.records import Message
from llmd_tui.screens.chat.widgets.dialogs import AskText, Choose, Confirm

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen

Act = Callable[["ChatScreen", Message], Awaitable[None]]


async def copy(screen: ChatScreen, message: Message) -> None:
    """Copy the text of a message."""
    screen.tui.copy(message.content.text, "the message")


async def copy_code(screen: ChatScreen, message: Message) -> None:
    """Copy a code block; if there are several, one of them is chosen."""
    blocks = code_blocks(message.content.text)
    if not blocks:
        screen.say("This message has no code block.")
        return
    rows = [(block, block.strip().partition("\n")[0]) for block in blocks]
    chosen: str | None = blocks[0]
    if len(blocks) > 1:
        chosen = await screen.ask(Choose("Copy a code block", rows))
    if chosen is not None:
        screen.tui.copy(chosen, "the code block")


async def edit(screen: ChatScreen, message: Message) -> None:
    """Write another version of a message; the present one stays as a branch next to it."""
    if message.role == "user":
        screen.edited = message
        screen.composer.edit(message.content)
        return
    what = "result" if message.role == "tool" else "answer"
    text = await screen.ask(
        AskText(f"Edit the {what}; the present one stays as a branch", message.content.text)
    )
    if text:
        content = msgspec.structs.replace(message.content, text=text, reasoning="", ending="", reason="")
        await screen.chat.add(message.role, content, message.parent)
        await screen.show_chat()


async def regenerate(screen: ChatScreen, message: Message) -> None:
    """Write another answer next to this one; of a question or a result: another answer to it."""
    parent = message.parent if message.role == "assistant" else message.message_id
    if parent is not None:
        screen.answer(parent)


async def go_on(screen: ChatScreen, message: Message) -> None:
    """Continue an answer where it ended."""
    if message.role != "assistant":
        screen.answer(message.message_id)
    elif message.content.text:
        screen.answer(message.message_id, continued=message)
    else:
        await regenerate(screen, message)


async def delete(screen: ChatScreen, message: Message) -> None:
    """Delete a message with all that follows it."""
    if await screen.ask(Confirm("Delete", "Delete this message and all that follows it, in every branch?")):
        screen.stop()
        await screen.chat.remove(message.message_id)
        await screen.show_chat()
        screen.focus_messages()


async def open_in_editor(screen: ChatScreen, message: Message) -> None:
    """Look at a message in the editor; changes to it are not kept."""
    edited_outside(screen.tui, message.content.text)


async def previous_branch(screen: ChatScreen, message: Message) -> None:
    await _turn(screen, message, -1)


async def next_branch(screen: ChatScreen, message: Message) -> None:
    await _turn(screen, message, 1)


async def _turn(screen: ChatScreen, message: Message, step: int) -> None:
    chat = screen.chat
    siblings = chat.tree.siblings(message.message_id)
    if len(siblings) == 1:
        screen.say("There is no other branch here: e and r make one.")
        return
    place = siblings.index(message.message_id) + step
    if await chat.turn_to(message.message_id, step):
        await screen.show_chat()
        await screen.conversation.reveal(siblings[place])


ACTIONS: Mapping[str, Act] = {
    "copy": copy,
    "copy_code": copy_code,
    "edit": edit,
    "regenerate": regenerate,
    "continue": go_on,
    "delete": delete,
    "open": open_in_editor,
    "previous": previous_branch,
    "next": next_branch,
}
