"""``llmd chat``: a conversation on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llmd.cli.answer_writer import answer_writer, show_note
from llmd.cli.chat_session import ChatSession
from llmd.cli.completion.names import model_names
from llmd.cli.connection import connect, named
from llmd.cli.conversation import Conversation, Message
from llmd.cli.examples import examples
from llmd.cli.generation_options import generation_options, given
from llmd.cli.line_reader import HISTORY_NAME, confirmed, editing, read_message
from llmd.cli.loading_progress import with_loading_progress
from llmd.cli.model_flag import ModelCommand
from llmd.cli.saved_conversations import SavedConversations
from llmd.cli.settings import client_options, daemon_settings
from llmd.cli.slash_commands import completions, obey
from llmd.cli.streaming import WINDOW_FULL, Printed, cut_note, print_answer, stats_line
from llmd.cli.terminal import terminal_width
from llmd.cli.typed_text import keep_bytes, valid
from llmd.cli.word_wrap import WordWrap

if TYPE_CHECKING:
    from llmd.client import Client

DEFAULT_MODEL = "guide"


@click.command(
    cls=ModelCommand, epilog=examples("llmd chat guide", 'llmd chat --system "Answer in one sentence."')
)
@click.argument("model", shell_complete=model_names, required=False)
@generation_options
@click.option("--stats", is_flag=True, help="Print token counts and speed after each answer.")
@click.option("--no-history", is_flag=True, help="Do not save the input history.")
@click.option("--no-start", is_flag=True, help="Do not start a daemon; exit with code 6 if none is running.")
@client_options
def command(
    *,
    model: str | None,
    system: str | None,
    stats: bool,
    no_history: bool,
    no_start: bool,
    host: str | None,
    timeout_s: float | None,
    config_file: Path | None,
    **sampling: Any,
) -> None:
    """Chat with a model. Type `/help` to list the chat commands.

    MODEL defaults to the loaded model if exactly one is loaded, else to `guide`. If no daemon is running, one
    is started and left running.
    """
    client = connect(host, timeout_s, config_file, start=not no_start)
    model = named(model) if model else default_model(client)

    conversation = Conversation(model, system, given(sampling))
    directories = daemon_settings(config_file).directories
    saved = SavedConversations(directories.conversations)
    access = DaemonModel(client, model, shows_stats=stats)
    session = ChatSession(conversation, access, saved, _to_stderr, _agrees)
    keep_bytes(sys.stdin)
    path = None if no_history else directories.state / HISTORY_NAME
    with editing(path, partial(completions, session)) if sys.stdin.isatty() else nullcontext():
        _to_stderr(f"{model}; /help lists commands, /exit leaves")
        converse(session)


class DaemonModel:
    """The daemon's model that a chat uses. Answers are shown as they arrive."""

    def __init__(self, client: Client, name: str, *, shows_stats: bool) -> None:
        self._client = client
        self._name = name
        self._shows_stats = shows_stats

    def ask(self, messages: list[Message], fields: Mapping[str, Any]) -> Printed:
        answers = self._client.stream_chat(messages, model=self._name, **fields)
        printed = print_answer(with_loading_progress(self._client, answers), answer_writer())
        if note := cut_note(printed, fields.get("max_tokens")):
            show_note(f"{note}; /reset clears the conversation" if note == WINDOW_FULL else note)
        if self._shows_stats:
            _to_stderr(stats_line(printed))
        return printed

    def count_tokens(self, messages: list[Message], fields: Mapping[str, Any]) -> int:
        return self._client.count_tokens(messages, model=self._name, **fields)

    def describe(self) -> Mapping[str, Any]:
        known = {model["id"]: model["max_model_len"] for model in self._client.models()}
        return {**self._client.show(self._name), "window": known.get(self._name)}


def converse(session: ChatSession) -> None:
    """Read and answer messages until the user leaves.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice in a row.
    """
    interrupted = False
    while not session.is_over:
        try:
            message = valid(read_message(_read_line))
        except EOFError:
            _to_stderr("")
            return
        except KeyboardInterrupt:
            if interrupted:
                raise
            _to_stderr("\npress Ctrl-C again or type /exit to leave")
            interrupted = True
            continue
        try:
            take(session, message)
            interrupted = False
        except KeyboardInterrupt:  # during a request to the daemon
            _to_stderr("")
            interrupted = True


def take(session: ChatSession, message: str) -> None:
    """Run a command or answer a question."""
    if message.startswith("/"):
        obey(session, message)
    elif message.strip():
        session.answer(message)


def default_model(client: Client) -> str:
    """Return the loaded model if exactly one is loaded, else the guide."""
    loaded = [row for row in client.ps() if row["status"] != "failed"]
    return str(loaded[0]["name"]) if len(loaded) == 1 else DEFAULT_MODEL


def _read_line(prompt: str) -> str:
    """Read a line. Show the prompt only to a terminal: a redirected standard output is for answers."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return input(prompt)
    if sys.stdin.isatty():
        click.echo(prompt, nl=False, err=True)
    return input()


def _agrees(question: str) -> bool:
    """Ask a yes-or-no question. Without a terminal the answer is no: the next line of input is a message."""
    return sys.stdin.isatty() and confirmed(question, _read_line)


def _to_stderr(text: str) -> None:
    """Show a message. On a terminal single lines are wrapped; listings and other multi-line texts are not."""
    if sys.stderr.isatty() and "\n" not in text:
        wrap = WordWrap(terminal_width)
        text = wrap.feed(text) + wrap.flush()
    click.echo(text, err=True)
