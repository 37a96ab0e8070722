"""Chats as files for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.store.records import Message, Session
from llmd_tui.screens.chat.store.sent_text import fenced, sent_text
from llmd_tui.screens.chat.words import ENDINGS, figures_line

SUFFIXES = (".md", ".json")
VERSION = 1


class _Exported(msgspec.Struct):
    version: int
    session: Session
    messages: Sequence[Message]


def export(file: str, session: Session, path: Sequence[Message], everything: Sequence[Message]) -> Path:
    """Write a chat to a new file: by its suffix the shown branch as Markdown, or all branches as JSON.

    Raises:
        LlmdError: the suffix is another one, the file exists, or it cannot be written.
    """
    target = Path(file).expanduser()
    if target.suffix not in SUFFIXES:
        raise LlmdError(f"{file} must end in {' or '.join(SUFFIXES)}", hint="write /export FILE.md")
    text = as_markdown(session, path) if target.suffix == ".md" else as_json(session, everything)
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise LlmdError(f"{file} exists already", hint="choose another name") from error
    except OSError as error:
        raise LlmdError(f"{file} cannot be written: {error.strerror}", hint="check the path") from error
    return target


def as_markdown(session: Session, path: Sequence[Message]) -> str:
    """Return a branch as Markdown."""
    return "\n\n".join(_parts(session, path)) + "\n"


def as_json(session: Session, messages: Sequence[Message]) -> str:
    """Return a chat with all its branches as JSON."""
    return msgspec.json.format(msgspec.json.encode(_Exported(VERSION, session, messages)), indent=2).decode()


def _parts(session: Session, path: Sequence[Message]) -> Iterator[str]:
    yield f"# {session.name}"
    if session.settings.system:
        yield f"## System\n\n{session.settings.system}"
    for message in path:
        content = message.content
        if message.role == "user":
            yield f"## You\n\n{sent_text(content)}"
            continue
        if message.role == "tool":
            yield f"## Result\n\n{fenced(content.calls[0].name, content.text)}"
            continue
        figures = figures_line(content.figures) if content.figures else ""
        yield f"## {content.figures.model if content.figures else 'Answer'}"
        if content.reasoning:
            yield "\n".join(f"> {line}" for line in content.reasoning.splitlines())
        for call in content.calls:
            yield f"```json\n{call.name} {call.arguments}\n```"
        if content.text:
            yield content.text
        notes = [note for note in (figures, ENDINGS.get(content.ending, "")) if note]
        if notes:
            yield f"*{'; '.join(notes)}*"
