"""A fake model for chats without a daemon: its tokens are words, and its answers are numbered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.api.errors import ContextLengthError, LlmdError
from llmd.cli.chat_session import ChatSession
from llmd.cli.conversation import Conversation, Message
from llmd.cli.saved_conversations import SavedConversations
from llmd.cli.streaming import Printed


class CountingModel:
    """Records its requests. Messages of ``window`` words or more fail, and all do while ``error`` is set."""

    def __init__(self, window: int = 1000) -> None:
        self.window = window
        self.asked: list[list[str]] = []
        self.fields: dict[str, Any] = {}
        self.error: LlmdError | None = None
        self.description: dict[str, Any] = {
            "details": {
                "family": "llama",
                "parameter_size": "1.2M",
                "quantization_level": "F32",
                "format": "safetensors",
                "context_length": 2048,
            },
            "capabilities": ["completion", "tools"],
            "window": None,
            "system": "",
            "template": "",
            "license": "Apache-2.0",
        }
        self.printed = Printed("", "stop", 1, 1, 0.0, 0.0)

    def ask(self, messages: list[Message], fields: Mapping[str, Any]) -> Printed:
        if self.error:
            raise self.error
        count = self.count_tokens(messages, fields)
        if count >= self.window:
            raise ContextLengthError(count, self.window)
        self.asked.append([message["content"] for message in messages])
        self.fields = dict(fields)
        answer = Printed(f"answer {len(self.asked)}", "stop", 1, 1, 0.0, 0.0)
        return answer if self.printed.finish == "stop" else self.printed

    def count_tokens(self, messages: list[Message], _fields: Mapping[str, Any]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    def describe(self) -> dict[str, Any]:
        return self.description


class Talk:
    """A chat with a model; records what the user is shown and asked, and answers questions with ``reply``.

    Conversations are saved in ``folder``.
    """

    def __init__(
        self,
        model: CountingModel,
        system: str | None = None,
        *,
        folder: Path = Path("/nonexistent"),
        **settings: float,
    ) -> None:
        self.said: list[str] = []
        self.questions: list[str] = []
        self.reply = True
        conversation = Conversation("guide", system, settings)
        self.session = ChatSession(
            conversation, model, SavedConversations(folder), self.said.append, self._agrees
        )

    def _agrees(self, question: str) -> bool:
        self.questions.append(question)
        return self.reply
