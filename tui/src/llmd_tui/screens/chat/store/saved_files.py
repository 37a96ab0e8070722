"""Conversations that ``llmd chat`` saved, each in a file of its own; `/save` writes such files too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError
from llmd.config.private_file import replace_private_file
from llmd_tui.screens.chat.store.records import Message, Settings
from llmd_tui.screens.chat.store.sent_text import sent_text

VERSION = 1
SUFFIX = ".json"
NUMBERS = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "repetition_penalty")
WORD = r"[A-Za-z0-9](?:[\w.-]{0,94}[\w-])?"
NAME = re.compile(rf"(?:{WORD}/)?{WORD}(?::[A-Za-z0-9][\w.-]*)?", re.ASCII)
"""The names that ``llmd chat`` accepts, short of revisions."""


class Turn(msgspec.Struct, frozen=True):
    """A question and its answer."""

    question: str
    answer: str


class Saved(msgspec.Struct, frozen=True):
    """A saved conversation."""

    model: str
    system: str | None = None
    settings: dict[str, int | float] = {}
    thinking: bool | None = None
    turns: Sequence[Turn] = ()

    def chat_settings(self) -> Settings:
        """Return the settings of the chat that goes on with it."""
        numbers: dict[str, Any] = {name: self.settings[name] for name in NUMBERS if name in self.settings}
        return Settings(model=self.model, system=self.system or "", thinking=self.thinking, **numbers)


class _File(msgspec.Struct, frozen=True):
    version: int
    conversation: Saved


class SavedFiles:
    """The saved conversations in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Return all names, sorted."""
        try:
            files = [file.name for file in self._folder.iterdir()]
        except OSError:
            return []
        return sorted(
            unquote(name.removesuffix(SUFFIX))
            for name in files
            if name.endswith(SUFFIX) and not name.startswith(".")
        )

    def read(self, name: str) -> Saved:
        """Return a saved conversation.

        Raises:
            LlmdError: there is none of this name, or its file cannot be read.
        """
        path = self._path(name)
        try:
            file = msgspec.json.decode(path.read_bytes(), type=prepared(_File))
        except FileNotFoundError as error:
            known = ", ".join(self.names()) or "none"
            raise LlmdError(f"there is no saved conversation {name}; saved conversations: {known}") from error
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LlmdError(f"{path} cannot be read: {error}", hint="correct it or delete it") from error
        if file.version != VERSION:
            raise LlmdError(
                f"{path} has format version {file.version}, but this llmd reads version {VERSION}",
                hint="update llmd",
            )
        return file.conversation

    def write(self, name: str, settings: Settings, path: Sequence[Message]) -> None:
        """Save the shown branch of a chat under a name.

        Raises:
            LlmdError: the name cannot be used, or the file cannot be written.
        """
        saved = Saved(
            settings.model,
            settings.system or None,
            {name: value for name in NUMBERS if (value := getattr(settings, name)) is not None},
            settings.thinking,
            turns(path),
        )
        encoded = msgspec.json.format(msgspec.json.encode(_File(VERSION, saved)), indent=2)
        replace_private_file(self._path(name), encoded)

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise LlmdError(
                f"{name!r} cannot be the name of a conversation",
                hint="use letters, digits, '.', '_' and '-', and begin with a letter or a digit",
            )
        return self._folder / f"{quote(name, safe='@:')}{SUFFIX}"


def turns(path: Sequence[Message]) -> list[Turn]:
    """Return the questions of a branch that were answered, with their answers."""
    # A file of `llmd chat` has no calls of tools: it gets the answer at their end.
    pairs = pairwise(one for one in path if one.role != "tool" and not one.content.calls)
    return [
        Turn(sent_text(one.content), two.content.text)
        for one, two in pairs
        if (one.role, two.role) == ("user", "assistant") and not two.is_left_out
    ]
