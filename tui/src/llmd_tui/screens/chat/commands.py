"""The chat's part of the command palette."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from llmd_tui.commands import Entry, LlmdCommands
from llmd_tui.screens.chat.slash_commands import COMMANDS

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen

WITHOUT_ARGUMENT = (
    "new",
    "reset",
    "model",
    "system",
    "set",
    "drop",
    "edit",
    "find",
    "rename",
    "load",
    "result",
    "curl",
)
"""Slash commands that ask for what they need."""
MESSAGE_ACTIONS = {
    "regenerate": "Write another answer to the last question",
    "continue": "Continue the last answer",
    "copy": "Copy the last message",
    "copy_code": "Copy a code block of the last message",
    "edit": "Edit the last message; the present one stays as a branch",
    "open": "Look at the last message in $EDITOR",
    "delete": "Delete the last message",
}
SESSION_ACTIONS = {
    "pin": "Keep this chat at the top of the list, or no longer",
    "archive": "Move this chat to the archive or back",
    "delete": "Delete this chat for good",
}


class ChatCommands(LlmdCommands):
    """Everything that the chat's keys and slash commands do."""

    def entries(self) -> Iterator[Entry]:
        screen = cast("ChatScreen", self.screen)
        yield Entry("Chat: stop the answer", screen.stop, "What has arrived is kept")
        yield Entry("Chat: show or hide the chats", screen.action_sessions, "The list at the left")
        for name in WITHOUT_ARGUMENT:
            help_text = COMMANDS[name].help
            yield Entry(f"Chat: /{name}", partial(screen.obey, name), help_text[0].upper() + help_text[1:])
        for name, words in MESSAGE_ACTIONS.items():
            title = f"Chat: {name.replace('_', ' ')} message"
            yield Entry(title, partial(screen.act_on_last, name), words)
        for name, words in SESSION_ACTIONS.items():
            yield Entry(f"Chat: {name} chat", partial(screen.act_on_session, name), words)
        for name in ("attach", "schema", "tools", "think", "save", "export"):
            yield Entry(f"Chat: /{name} …", partial(screen.prompt.begin, f"/{name} "), COMMANDS[name].help)
