"""What is kept of a chat."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["user", "assistant", "tool"]
"""``tool``: the result of a call, which is the only one in ``Content.calls``."""
Ending = Literal["", "running", "stopped", "max_tokens", "context", "lost", "failed"]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Model, system prompt and sampling of a chat; None leaves the choice to the model."""

    model: str = ""
    system: str = ""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    thinking: bool | None = None
    """Whether the model reasons before it answers."""
    schema_file: str = ""
    """The file that ``schema`` was read from."""
    schema: dict[str, Any] | None = None
    """JSON schema that answers follow."""
    tools_file: str = ""
    """The file that ``tools`` were read from."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tools that the model may call, in OpenAI's form."""


class Attachment(msgspec.Struct, frozen=True):
    """A text that is sent with a message."""

    name: str
    text: str


class Call(msgspec.Struct, frozen=True):
    """A call of a tool; ``arguments`` is JSON as the model wrote it."""

    name: str
    arguments: str
    call_id: str = ""
    """What the daemon calls it."""


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The measurements of an answer; None where they are not known."""

    model: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_ms: float | None = None
    tokens_per_s: float | None = None
    seed: int | None = None


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a message says."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    figures: Figures | None = None
    ending: Ending = ""
    """Why an answer is not complete; empty: it is. ``running``: it was being written when llmd tui ended."""
    reason: str = ""
    """The words of the error that ended the answer."""


class Message(msgspec.Struct, frozen=True):
    """A message at its place in the tree of a chat."""

    message_id: int
    parent: int | None
    """The message that it follows; None for a first message."""
    role: Role
    content: Content

    @property
    def is_left_out(self) -> bool:
        """Whether this is an answer without text, which is not sent again; neither is its question."""
        return self.role == "assistant" and not self.content.text and self.content.ending != ""


class Session(msgspec.Struct, frozen=True):
    """A chat without its messages. Times are seconds since 1970."""

    session_id: int
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    pinned: bool = False
    archived: bool = False
    settings: Settings = Settings()
    leaf: int | None = None
    """The last message of the branch that is shown."""
    first_sent: int | None = None
    """Messages with a lower number are not sent, since they were dropped; None: all are sent."""
    draft: str = ""

    @property
    def name(self) -> str:
        """The title to show."""
        return self.title or "New chat"
