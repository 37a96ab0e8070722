"""The slash commands of the prompt: their names, help, and completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from llmd_tui.screens.chat.attachments import path_completions
from llmd_tui.screens.chat.generation_settings import NUMBERS, THINKING


class SlashCommand(NamedTuple):
    """A command of the prompt."""

    help: str
    argument: str = ""
    """The placeholder of its argument in the help."""


COMMANDS: Mapping[str, SlashCommand] = {
    "help": SlashCommand("list these commands and the keys"),
    "new": SlashCommand("begin a new chat"),
    "reset": SlashCommand("begin a new chat with this system prompt and these settings"),
    "model": SlashCommand("choose the model", "[NAME]"),
    "system": SlashCommand("set the system prompt; without TEXT, edit it", "[TEXT]"),
    "set": SlashCommand("change a setting; without NAME, all of them", "[NAME VALUE]"),
    "schema": SlashCommand("bind answers to the JSON schema in a file; without FILE, to none", "[FILE]"),
    "think": SlashCommand("let the model reason before it answers", "on|off|default"),
    "tools": SlashCommand(
        "offer the model the tools that a JSON file declares; without FILE, none", "[FILE]"
    ),
    "result": SlashCommand(
        "send what a tool returned that the model called; without TEXT, write it", "[TEXT]"
    ),
    "attach": SlashCommand("send a text file with the next message", "FILE"),
    "drop": SlashCommand("leave the oldest turns out of later requests, until there is room"),
    "edit": SlashCommand("write the message in $EDITOR"),
    "find": SlashCommand("search in this chat", "[TEXT]"),
    "rename": SlashCommand("name this chat", "[TITLE]"),
    "save": SlashCommand("save the conversation, as llmd chat does", "NAME"),
    "load": SlashCommand("go on with a conversation that was saved; without NAME, choose one", "[NAME]"),
    "export": SlashCommand("write this chat to a file: FILE.md or FILE.json", "FILE"),
    "curl": SlashCommand("copy the request as a curl command"),
    "exit": SlashCommand("leave; the daemon goes on"),
}
ALIASES = {"clear": "reset", "?": "help", "quit": "exit", "bye": "exit"}
KEYS = {
    "Enter": "send the message",
    "Ctrl-J, Shift-Enter": "break the line",
    "Tab": "go to the messages; in a command: complete it, a name or a path",
    "↑ ↓": "at the edges of the prompt: earlier messages",
    "Esc": "stop the answer; from the messages: go back to the prompt",
    "Ctrl-R": "write another answer",
    "Ctrl-G": "write the message in $EDITOR",
    "Ctrl-L": "the list of chats",
    "y, b": "on a message: copy it, or a code block of it",
    "e, r, c": "on a message: edit, regenerate, continue",
    "← →": "on a message: other branches",
    "t, x, o": "on a message: show its reasoning, delete it, open it in the editor",
    "/": "on a message: find in this chat",
}
FILES = ("attach", "schema", "tools", "export")


def parsed(text: str) -> tuple[str, str] | None:
    """Return the command of a prompt with its argument; None if it is a message.

    A path such as ``/etc/hosts`` and a text of several lines are messages. The name may be unknown.
    """
    if not text.startswith("/") or "\n" in text.strip():
        return None
    name, _, argument = text[1:].strip().partition(" ")
    return None if "/" in name else (ALIASES.get(name, name), argument.strip())


def completions(text: str, models: Sequence[str] = (), saved: Sequence[str] = ()) -> list[str]:
    """Return whole prompts that complete a command; ``models`` and ``saved`` are names to choose from."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, space, argument = text[1:].partition(" ")
    if not space:
        return sorted(f"/{known}" for known in COMMANDS if known.startswith(name))
    name = ALIASES.get(name, name)
    if name in FILES:
        offers: Sequence[str] = path_completions(argument)
    else:
        words = {
            "model": models,
            "load": saved,
            "save": saved,
            "set": tuple(NUMBERS),
            "think": tuple(THINKING),
        }
        offers = [word for word in words.get(name, ()) if word.startswith(argument)]
    return [f"/{name} {offer}" for offer in offers if offer != argument]


def completed(text: str, offers: Sequence[str]) -> str:
    """Return the text with all that the offers have in common."""
    common = _common(offers)
    if len(offers) == 1 and not common.endswith("/"):
        return f"{common} "
    return common if len(common) > len(text) else text


def _common(offers: Sequence[str]) -> str:
    """Return the longest beginning of all offers."""
    letters = takewhile(lambda column: len(set(column)) == 1, zip(*offers, strict=False))
    return "".join(column[0] for column in letters)


def help_text() -> str:
    """Return the commands and keys with what they do, in two columns."""
    rows = {f"/{name} {command.argument}".rstrip(): command.help for name, command in COMMANDS.items()}
    width = max(map(len, [*rows, *KEYS]))
    lines = [f"{name:{width}}  {what}" for name, what in rows.items()]
    return "\n".join([*lines, "", *(f"{key:{width}}  {what}" for key, what in KEYS.items())])
