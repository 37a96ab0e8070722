"""The commands of a chat, which begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llmd.api.errors import LlmdError
from llmd.cli.chat_session import ChatSession
from llmd.cli.generation_options import KINDS, read_field
from llmd.cli.output import aligned


class SlashCommand(NamedTuple):
    """``argument`` is how help shows what follows the name."""

    run: Callable[[ChatSession, str], None]
    help: str
    argument: str = ""


def obey(session: ChatSession, line: str) -> None:
    """Run the command that a line names. What goes wrong is said; the chat goes on."""
    word, _, argument = line[1:].partition(" ")
    name = word.strip()
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is None:
        session.say(f"there is no command /{name}; /help lists them")
        return
    try:
        command.run(session, argument.strip())
    except LlmdError as error:
        session.say(str(error))


def _help(session: ChatSession, _argument: str) -> None:
    rows = [[_usage(name, command), command.help] for name, command in COMMANDS.items()]
    session.say(aligned([*rows, *KEYS]))


def _usage(name: str, command: SlashCommand) -> str:
    """All names of a command, and what follows them."""
    names = [name, *(alias for alias, meant in ALIASES.items() if meant == name)]
    return f"{', '.join(f'/{name}' for name in names)} {command.argument}".rstrip()


def _exit(session: ChatSession, _argument: str) -> None:
    session.is_over = True


def _reset(session: ChatSession, _argument: str) -> None:
    session.conversation.turns.clear()
    session.say("the conversation is forgotten")


def _system(session: ChatSession, text: str) -> None:
    conversation = session.conversation
    conversation.system = text or conversation.system
    session.say(conversation.system or "there is no system prompt")


def _think(session: ChatSession, state: str) -> None:
    if state not in {"on", "off"}:
        session.say("write /think on or /think off")
        return
    session.conversation.thinking = state == "on"
    session.say(f"thinking is {state}")


def _set(session: ChatSession, text: str) -> None:
    settings = session.conversation.settings
    if text:
        name, _, value = text.partition(" ")
        try:
            field, number = read_field(name, value.strip())
        except ValueError as error:
            session.say(str(error))
            return
        settings[field] = number
    session.say("\n".join(f"{name} {value}" for name, value in settings.items()) or DEFAULTS)


DEFAULTS = "every setting is as the model's makers chose"
COMMANDS = {
    "system": SlashCommand(_system, "set the system prompt; without TEXT, show it", "[TEXT]"),
    "set": SlashCommand(_set, f"set {', '.join(KINDS)}", "[NAME VALUE]"),
    "think": SlashCommand(_think, "let the model think before it answers, where it can", "on|off"),
    "reset": SlashCommand(_reset, "forget the conversation; system prompt and settings stay"),
    "help": SlashCommand(_help, "show this"),
    "exit": SlashCommand(_exit, "leave"),
}
ALIASES = {"quit": "exit"}
KEYS = (
    ['"""', "begins and ends a message of several lines"],
    ["Ctrl-C", "ends an answer; twice: leave"],
)
