"""Call ids for templates that write them in their own form, as Mistral's and Kimi's do.

Mistral's templates refuse ids other than nine letters or digits. Kimi's write the id of a call where others
write its name: ``functions.NAME:NUMBER``, numbered from 0 through the conversation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llmd.chat.templates.template_messages import Message

CallIds = Literal["any", "short", "numbered"]
"""Which ids a template takes: any, nine letters or digits, or ``functions.NAME:NUMBER``."""

_GOOD = re.compile(r"[A-Za-z0-9]{9}\Z")
_DEMANDS_SHORT = re.compile(r"length\s*!=\s*9\b")
_AFTER_ID = "<|tool_call_argument_begin|>"


def taken_ids(template: str) -> CallIds:
    """Return which ids a template takes."""
    if _DEMANDS_SHORT.search(template) is not None:
        return "short"
    return "numbered" if _AFTER_ID in template else "any"


def with_call_ids(messages: Sequence[Message], form: CallIds) -> list[Message]:
    """Return prepared messages in which calls and tool messages have ids of this form.

    A tool message keeps its call. A call without an id gets one; a tool message without an id gets the id of
    the first preceding call that has no answer yet.
    """
    if form == "any":
        return list(messages)
    ids = _NewIds(form)
    changed: list[Message] = []
    for message in messages:
        new = dict(message)
        if "tool_calls" in message:
            new["tool_calls"] = [{**call, "id": ids.of_call(call)} for call in message["tool_calls"]]
        if message["role"] == "tool":
            new["tool_call_id"] = ids.of_answer(message)
        changed.append(new)
    return changed


class _NewIds:
    """The ids of a conversation's calls, asked for in order."""

    def __init__(self, form: CallIds) -> None:
        self._form = form
        self._num_calls = 0
        self._new: dict[str, str] = {}
        """New ids by the given ones; of calls with equal ids the last."""
        self._unanswered: list[str] = []

    def of_call(self, call: Mapping[str, Any]) -> str:
        given = call.get("id") or f"call {self._num_calls}"
        new = self._new[given] = self._made(given, call["function"].get("name"))
        self._num_calls += 1
        self._unanswered.append(new)
        return new

    def of_answer(self, message: Message) -> str:
        asked = message.get("tool_call_id") or ""
        found = self._new.get(asked) or (self._unanswered[0] if self._unanswered and not asked else None)
        new = found or self._made(asked, message.get("name"))
        self._unanswered = [one for one in self._unanswered if one != new]
        return new

    def _made(self, given: str, name: str | None) -> str:
        if self._form == "numbered":
            return f"functions.{name or 'unknown'}:{self._num_calls}"
        return given if _GOOD.match(given) else hashlib.sha256(given.encode()).hexdigest()[:9]
