"""Reads what is typed in a chat, with a history that only its owner can read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

PROMPT = "> "
CONTINUED = ". "
QUOTES = '"""'
HISTORY_NAME = "chat_history"
HISTORY_MODE = 0o600
HISTORY_LEN = 1000


def read_message(read_line: Callable[[str], str]) -> str:
    '''Read one line, or several between ``"""``.

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
    """Ask yes or no; Enter alone is yes, Ctrl-C and Ctrl-D are no. The answer is not kept in the history."""
    import readline

    readline.set_auto_history(False)
    try:
        return read_line(f"{question} [Y/n] ").strip().lower() in {"", "y", "yes"}
    except (EOFError, KeyboardInterrupt):
        return False
    finally:
        readline.set_auto_history(True)


@contextlib.contextmanager
def history(path: Path) -> Iterator[None]:
    """Keep what is typed in a file; the keys of a shell's line work too."""
    import readline

    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, HISTORY_MODE))
    path.chmod(HISTORY_MODE)
    readline.clear_history()
    readline.set_history_length(HISTORY_LEN)
    readline.read_history_file(path)
    try:
        yield
    finally:
        readline.write_history_file(path)
