"""What widgets ask of the application. These messages go up; only the application calls the daemon."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class CancelRequest(Message):
    """End a request."""

    request_id: str


@dataclass
class UnloadModel(Message):
    """Unload a model."""

    name: str


@dataclass
class ChatWith(Message):
    """Open the chat with a model."""

    name: str


@dataclass
class CopyText(Message):
    """Copy a text to the clipboard."""

    text: str
    what: str
    """Name of what is copied, for the notice."""
