"""Keys of messages: what a message must have, and which key a misspelt one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from llmd.api.errors import RequestError

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
# What an assistant's message may have in place of content. A tool's or a user's message has nothing else to say.
_INSTEAD = ("tool_calls", "function_call", "refusal", *REASONING_KEYS)
CHAT_KEYS = (
    "role",
    "content",
    "name",
    "tool_name",
    "tool_call_id",
    "images",
    "audio",
    "annotations",
    *_INSTEAD,
)
"""Keys that chat messages have in OpenAI's API, in Ollama's, and in those of servers that add reasoning."""


def require_content(message: Mapping[str, Any], param: str) -> None:
    """Refuse a chat message that says nothing. An empty text is content; an empty list is that of a tool alone.

    Raises:
        RequestError: it has no content, nor calls or reasoning of an assistant.
    """
    role = message.get("role")
    sufficient = ("content", *_INSTEAD) if role == "assistant" else ("content",)
    empty: tuple[Any, ...] = (None,) if role in ("tool", "function") else (None, [])
    if any(message.get(key) not in empty for key in sufficient):
        return
    wanted = "send content or tool_calls" if role == "assistant" else "send content"
    raise RequestError(
        f"{param} has no content", param=f"{param}.content", hint=misspelt(message, CHAT_KEYS) or wanted
    )


def misspelt(message: Mapping[str, Any], known: Collection[str]) -> str:
    """What to say of the first key that is not known; empty where every key is."""
    key = next((key for key in message if key not in known), None)
    if key is None:
        return ""
    near = difflib.get_close_matches(key, known, n=1)
    return f"its key {key!r} is unknown; " + (
        f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    )


def unknown_keys(
    messages: Iterable[Any], known: Collection[str], param: str = "messages[{}]"
) -> tuple[str, ...]:
    """Each key that is not known, once, with its first place; a template may still read it."""
    found: dict[str, str] = {}
    for place, message in enumerate(messages):
        for key in message if isinstance(message, Mapping) else ():
            if key not in known:
                found.setdefault(key, f"{param.format(place)}.{key}")
    return tuple(found.values())
