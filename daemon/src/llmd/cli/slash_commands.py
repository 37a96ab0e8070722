"""The slash commands of a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from llmd.api.errors import LlmdError
from llmd.cli.chat_session import ChatSession
from llmd.cli.generation_options import KINDS, read_field
from llmd.cli.model_description import TOPICS, described
from llmd.cli.output import aligned

STATES = {"on": True, "off": False}
DEFAULTS = "every setting has the model's default"


class SlashCommand(NamedTuple):
    """One command."""

    run: Callable[[ChatSession, str], None]
    help: str
    argument: str = ""
    """The placeholder of its argument in the help."""
    words: Callable[[ChatSession], Iterable[str]] = lambda _session: ()
    """Returns the Tab completions of its argument."""


def obey(session: ChatSession, line: str) -> None:
    """Run the command in a line. Errors are shown, and the chat continues."""
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


def completions(session: ChatSession, before: str, word: str) -> list[str]:
    """Return the completions of a word: names of commands, or arguments of the command before it."""
    match before.split():
        case []:
            names = [f"/{name}" for name in (*COMMANDS, *ALIASES)]
            return sorted(name for name in names if word.startswith("/") and name.startswith(word))
        case [name]:
            command = COMMANDS.get(ALIASES.get(name[1:], name[1:])) if name.startswith("/") else None
            return [offer for offer in (command.words(session) if command else ()) if offer.startswith(word)]
        case _:
            return []


def _help(session: ChatSession, _argument: str) -> None:
    rows = [[_usage(name, command), command.help] for name, command in COMMANDS.items()]
    session.say(aligned([*rows, *KEYS]))


def _usage(name: str, command: SlashCommand) -> str:
    """Return all names of a command and its argument."""
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
    conversation = session.conversation
    if not session.can_think():
        session.say(f"{conversation.model} cannot think before it answers, so /think has no effect")
    elif state in STATES:
        conversation.thinking = STATES[state]
        session.say(f"thinking is {state}")
    else:
        session.say("write /think on or /think off")


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


def _show(session: ChatSession, topic: str) -> None:
    session.say(described(session.conversation, session.model.describe(), topic))


def _save(session: ChatSession, name: str) -> None:
    if not name:
        session.say("write /save NAME")
        return
    replaces = session.saved.save(name, session.conversation)
    outcome = "it replaces an older one" if replaces else f"/load {name} restores it"
    session.say(f"saved {_turns(session)} as {name}; {outcome}")


def _load(session: ChatSession, name: str) -> None:
    if not name:
        names = session.saved.names()
        session.say("\n".join(names) or "no conversation has been saved; /save NAME saves this one")
        return
    loaded, model = session.saved.load(name), session.conversation.model
    if loaded.thinking is not None and not session.can_think():
        loaded.thinking = None
    saved_with, loaded.model = loaded.model, model
    session.conversation = loaded
    other = f"; they were saved with {saved_with}, and {model} continues" if saved_with != model else ""
    session.say(f"loaded {_turns(session)}{other}")


def _turns(session: ChatSession) -> str:
    count = len(session.conversation.turns)
    return "1 turn" if count == 1 else f"{count} turns"


def _saved_names(session: ChatSession) -> Iterable[str]:
    return session.saved.names()


COMMANDS = {
    "system": SlashCommand(_system, "set the system prompt; without TEXT, show it", "[TEXT]"),
    "set": SlashCommand(_set, f"set {', '.join(KINDS)}", "[NAME VALUE]", lambda _: KINDS),
    "think": SlashCommand(_think, "let the model think before it answers", "on|off", lambda _: STATES),
    "show": SlashCommand(_show, "show the model and settings; Tab lists topics", "[TOPIC]", lambda _: TOPICS),
    "save": SlashCommand(_save, "save the conversation with its settings", "NAME", _saved_names),
    "load": SlashCommand(
        _load, "continue a saved conversation; without NAME, list them", "[NAME]", _saved_names
    ),
    "reset": SlashCommand(_reset, "forget the conversation; system prompt and settings stay"),
    "help": SlashCommand(_help, "show this help"),
    "exit": SlashCommand(_exit, "leave"),
}
ALIASES = {"clear": "reset", "?": "help", "quit": "exit", "bye": "exit"}
KEYS = (
    ['"""', "starts and ends a message of several lines"],
    ["Tab", "completes commands"],
    ["Ctrl-C", "stops an answer; press twice to leave"],
)
