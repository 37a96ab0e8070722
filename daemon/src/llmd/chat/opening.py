"""Messages that precede every conversation with a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]
SYSTEM = ("system", "developer")


def with_opening(opening: Sequence[Message], messages: Sequence[Message]) -> Sequence[Message]:
    """Return the conversation after its opening. Its own system message replaces the opening's."""
    if not opening:
        return messages
    has_system = bool(messages) and messages[0].get("role") in SYSTEM
    first = [messages[0]] if has_system else [message for message in opening if message["role"] in SYSTEM]
    others = [message for message in opening if message["role"] not in SYSTEM]
    return [*first, *others, *messages[has_system:]]
