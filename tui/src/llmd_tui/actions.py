"""What widgets ask of the application. They are messages that go up; only the application calls the daemon."""

from __future__ import annotations

from textual.message import Message


class CancelRequest(Message):
    """End a request."""

    def __init__(self, request_id: str) -> None:
        super().__init__()
        self.request_id = request_id


class LoadModel(Message):
    """Load a model."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class UnloadModel(Message):
    """Unload a model."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class PullModel(Message):
    """Fetch a model from a hub."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class ChatWith(Message):
    """Open the chat with a model."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class CopyText(Message):
    """Copy a text to the clipboard."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what
        """Name of what is copied, for the notice."""
