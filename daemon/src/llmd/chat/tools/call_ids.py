"""Call ids for templates that demand nine letters or digits, as Mistral's do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from llmd.chat.templates.template_messages import Message

_GOOD = re.compile(r"[A-Za-z0-9]{9}\Z")
_DEMAND = re.compile(r"length\s*!=\s*9\b")


def demands_short_ids(template: str) -> bool:
    """Return whether a template rejects other ids."""
    return _DEMAND.search(template) is not None


def with_short_ids(messages: Sequence[Message]) -> list[Message]:
    """Return prepared messages in which calls and tool messages have such ids.

    Equal ids stay equal. A call without an id gets one; a tool message without an id gets the id of the first
    preceding call that has no answer yet.
    """
    shortened: list[Message] = []
    unanswered: list[str] = []
    for place, message in enumerate(messages):
        new = dict(message)
        if "tool_calls" in message:
            calls = message["tool_calls"]
            given = [call.get("id") or f"{place}.{number}" for number, call in enumerate(calls)]
            new["tool_calls"] = [{**call, "id": _short(one)} for call, one in zip(calls, given, strict=True)]
            unanswered += [call["id"] for call in new["tool_calls"]]
        if message["role"] == "tool":
            asked = message.get("tool_call_id")
            answered = _short(asked) if asked else next(iter(unanswered), _short(str(place)))
            new["tool_call_id"] = answered
            unanswered = [one for one in unanswered if one != answered]
        shortened.append(new)
    return shortened


def _short(call_id: str) -> str:
    return call_id if _GOOD.match(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]
