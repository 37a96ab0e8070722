"""Text files that are sent with a message."""

from __future__ import annotations

from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.records import Attachment

MAX_BYTES = 1 << 20
LONG_PASTE = 2000
"""Characters from which a pasted text becomes an attachment."""
OFFERED = 50
"""Completions of a path that are listed."""


def read_attachment(name: str) -> Attachment:
    """Return a text file.

    Raises:
        LlmdError: it cannot be read, is too large or is no text.
    """
    path = Path(name).expanduser()
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise LlmdError(f"{name} cannot be read: {error.strerror}", hint="check the path") from error
    if len(content) > MAX_BYTES:
        raise LlmdError(f"{name} is larger than {MAX_BYTES >> 20} MiB", hint="attach the part that matters")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise LlmdError(f"{name} is not a text file", hint="only text in UTF-8 can be attached") from error
    if "\0" in text:
        raise LlmdError(f"{name} is not a text file", hint="only text in UTF-8 can be attached")
    if not text.strip():
        raise LlmdError(f"{name} is empty")
    return Attachment(path.name, text)


def pasted(text: str, others: int) -> Attachment | None:
    """Return a long pasted text as an attachment; None if it belongs into the prompt."""
    return Attachment(f"pasted text {others + 1}", text) if len(text) > LONG_PASTE else None


def chip(attachment: Attachment) -> str:
    """Return an attachment in a few words."""
    return f"{attachment.name}, {format_bytes(len(attachment.text.encode()))}"


def path_completions(word: str) -> list[str]:
    """Return the paths that begin with a word; those of folders end with a slash."""
    head, slash, tail = word.rpartition("/")
    folder = Path(f"{head}{slash}" or ".").expanduser()
    try:
        found = sorted(folder.iterdir(), key=lambda path: path.name.lower())
    except OSError:
        return []
    named = [path for path in found if path.name.startswith(tail) and (tail or not path.name.startswith("."))]
    return [f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}" for path in named[:OFFERED]]
