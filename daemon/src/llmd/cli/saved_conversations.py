"""Saved conversations, each in a file that only its owner can read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError, NotFoundError
from llmd.cli.conversation import Conversation
from llmd.config.private_file import replace_private_file
from llmd.registry.names import check_name

VERSION = 1
SUFFIX = ".json"
KIND = "conversation"


class _Versioned(msgspec.Struct):
    version: int


class _File(_Versioned, forbid_unknown_fields=True):
    conversation: Conversation


class SavedConversations:
    """The conversations in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def names(self) -> list[str]:
        """Return all names, sorted."""
        with contextlib.suppress(OSError):  # nothing has been saved yet
            files = [file.name for file in self._directory.iterdir() if not file.name.startswith(".")]
            return sorted(unquote(name.removesuffix(SUFFIX)) for name in files if name.endswith(SUFFIX))
        return []

    def save(self, name: str, conversation: Conversation) -> bool:
        """Save a conversation; return whether it replaced another one.

        Raises:
            RequestError: the name is not valid.
            LlmdError: the file cannot be written.
        """
        path = self._path(name)
        replaces = path.exists()
        encoded = msgspec.json.encode(_File(VERSION, conversation))
        replace_private_file(path, msgspec.json.format(encoded, indent=2))
        return replaces

    def load(self, name: str) -> Conversation:
        """Return the conversation of that name.

        Raises:
            RequestError: the name is not valid.
                NotFoundError: there is no such conversation; the message lists the saved ones.
                LlmdError: the file cannot be read, or has another version.
        """
        path = self._path(name)
        try:
            return _decoded(path, path.read_bytes())
        except FileNotFoundError as error:
            known = ", ".join(self.names()) or "none"
            raise NotFoundError(
                f"there is no saved conversation {name}; saved conversations: {known}",
                hint="/save NAME saves this one",
            ) from error
        except OSError as error:
            raise LlmdError(f"{path} cannot be read: {error.strerror}") from error

    def _path(self, name: str) -> Path:
        return self._directory / f"{quote(check_name(name, KIND), safe='@:')}{SUFFIX}"


def _decoded(path: Path, content: bytes) -> Conversation:
    try:
        version = msgspec.json.decode(content, type=prepared(_Versioned)).version
        if version == VERSION:
            return msgspec.json.decode(content, type=prepared(_File)).conversation
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LlmdError(
            f"{path} is not a saved conversation: {error}", hint="correct it or delete it"
        ) from error
    raise LlmdError(
        f"{path} has format version {version}, but this llmd reads version {VERSION}",
        hint="update llmd, or delete the file",
    )
