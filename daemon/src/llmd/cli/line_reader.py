"""Reads lines in a chat, with a history file that only its owner can read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PROMPT = "> "
CONTINUED = ". "
QUOTES = '"""'
HISTORY_NAME = "chat_history"
HISTORY_MODE = 0o600
HISTORY_LEN = 1000
LIBEDIT_TAB = "bind ^I rl_complete"
Complete = Callable[[str, str], Sequence[str]]
"""Returns the completions of a word, given the line before it and the word."""


def read_message(read_line: Callable[[str], str]) -> str:
    '''Read one line, or several lines between ``"""``.

    Raises:
        EOFError: the input ended.
    '''
    line = read_line(PROMPT)
    if not line.startswith(QUOTES):
        return line
    lines = [line.removeprefix(QUOTES)]
    while not lines[-1].endswith(QUOTES):
        lines.append(read_line(CONTINUED))
    return "\n".join([*lines[:-1], lines[-1].removesuffix(QUOTES)]).strip("\n")


def confirmed(question: str, read_line: Callable[[str], str]) -> bool:
    """Ask a yes-or-no question. Enter alone is yes; Ctrl-C and Ctrl-D are no. The history omits it."""
    import readline

    readline.set_auto_history(False)
    try:
        return read_line(f"{question} [Y/n] ").strip().lower() in {"", "y", "yes"}
    except (EOFError, KeyboardInterrupt):
        return False
    finally:
        readline.set_auto_history(True)


@contextlib.contextmanager
def editing(history: Path | None, complete: Complete) -> Iterator[None]:
    """Enable line editing with Tab completion and, unless ``history`` is None, a history file."""
    import readline

    readline.clear_history()
    readline.set_completer_delims(" ")
    readline.set_completer(_nth_of(complete))
    readline.parse_and_bind(LIBEDIT_TAB if "libedit" in (readline.__doc__ or "") else "tab: complete")
    with _kept(history) if history else contextlib.nullcontext():
        try:
            yield
        finally:
            readline.set_completer(None)


@contextlib.contextmanager
def _kept(history: Path) -> Iterator[None]:
    """Load the history, which only its owner can read, and save it at the end."""
    import readline

    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_RDWR, HISTORY_MODE))
    history.chmod(HISTORY_MODE)
    readline.set_history_length(HISTORY_LEN)
    readline.read_history_file(history)
    try:
        yield
    finally:
        readline.write_history_file(history)


def _nth_of(complete: Complete) -> Callable[[str, int], str | None]:
    """Adapt a completion function to readline, which asks for one completion after another until None."""
    import readline

    def nth(word: str, place: int) -> str | None:
        before = readline.get_line_buffer()[: readline.get_begidx()]
        found = complete(before, word)
        return found[place] if place < len(found) else None

    return nth
