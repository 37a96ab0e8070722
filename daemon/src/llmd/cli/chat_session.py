"""A running chat: answers questions, and drops old turns when the context window is full."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from llmd.api.errors import ContextLengthError, LlmdError
from llmd.chat.truncation import prompt_room
from llmd.cli.conversation import Conversation, Message, Turn
from llmd.cli.saved_conversations import SavedConversations
from llmd.cli.streaming import INTERRUPTED, Printed


class ModelAccess(Protocol):
    """What a chat needs of its model. Every call may raise `LlmdError`."""

    def ask(self, messages: list[Message], fields: Mapping[str, Any]) -> Printed:
        """Generate an answer and show it as it arrives."""
        ...

    def count_tokens(self, messages: list[Message], fields: Mapping[str, Any]) -> int:
        """Return the number of tokens in a prompt."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what ``/api/show`` reports. ``window`` is the loaded context window in tokens, or None."""
        ...


class ChatSession:
    """``say`` shows a message. ``agrees`` asks a yes-or-no question; it is False if no user can answer."""

    def __init__(
        self,
        conversation: Conversation,
        model: ModelAccess,
        saved: SavedConversations,
        say: Callable[[str], None],
        agrees: Callable[[str], bool],
    ) -> None:
        self.conversation = conversation
        self.model = model
        self.saved = saved
        self.say = say
        self.is_over = False
        self._agrees = agrees

    def can_think(self) -> bool:
        """Whether the model can think before it answers."""
        return "thinking" in self.model.describe()["capabilities"]

    def answer(self, question: str) -> None:
        """Answer a question. If that fails, the question does not become part of the conversation."""
        try:
            try:
                self._ask(question)
            except ContextLengthError as full:
                if self._make_room(question, full):
                    self._ask(question)
        except LlmdError as error:
            self.say(str(error))

    def _ask(self, question: str) -> None:
        printed = self.model.ask(self.conversation.messages(question), self.conversation.fields())
        if printed.text or printed.finish != INTERRUPTED:
            self.conversation.turns.append(Turn(question, printed.text))

    def _make_room(self, question: str, full: ContextLengthError) -> bool:
        """Offer to drop the oldest turns; return whether they were dropped."""
        turns = self.conversation.turns
        alone = self._count(question, without=len(turns)) if turns else full.prompt_len
        if alone >= full.context_len:
            what = "message with the system prompt" if self.conversation.system else "message"
            self.say(f"this {what} alone has {alone} tokens, and {_window(full)}: shorten it")
            return False
        dropped = self._fewest_to_drop(question, full.context_len)
        oldest = "oldest turn" if dropped == 1 else f"{dropped} oldest turns"
        self.say(f"the conversation with this message has {full.prompt_len} tokens, and {_window(full)}")
        if not self._agrees(f"drop the {oldest} of {len(turns)} and send it?"):
            self.say("the message was not sent; /reset clears the whole conversation")
            return False
        del turns[:dropped]
        self.say(f"dropped the {oldest}")
        return True

    def _fewest_to_drop(self, question: str, window: int) -> int:
        """Return how many of the oldest turns to drop to make room for an answer; all if none suffice."""
        room = prompt_room(window, self._max_tokens)
        candidates = range(1, len(self.conversation.turns))
        return 1 + bisect_left(
            candidates, True, key=lambda dropped: self._count(question, without=dropped) <= room
        )

    @property
    def _max_tokens(self) -> int | None:
        max_tokens = self.conversation.settings.get("max_tokens")
        return None if max_tokens is None else int(max_tokens)

    def _count(self, question: str, *, without: int) -> int:
        messages = self.conversation.messages(question, without=without)
        return self.model.count_tokens(messages, self.conversation.fields())


def _window(full: ContextLengthError) -> str:
    return f"the context window holds {full.context_len}"
