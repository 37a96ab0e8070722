"""Keys of messages: those a message must have, and suggestions for misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from llmd.api.errors import RequestError

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
# What an assistant message may have instead of content. Tool and user messages must have content.
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
"""Keys of chat messages in OpenAI's API, in Ollama's, and in those of servers that add reasoning."""


def require_content(message: Mapping[str, Any], param: str) -> None:
    """Reject a chat message without content. An empty string is content; so is an empty list of a tool.

    Raises:
        RequestError: it has no content and is not an assistant message with calls, a refusal or reasoning.
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
    """Return a hint about the first unknown key; empty if every key is known."""
    key = next((key for key in message if key not in known), None)
    if key is None:
        return ""
    near = difflib.get_close_matches(key, known, n=1)
    return f"its key {key!r} is unknown; " + (
        f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(known)}"
    )


def unknown_keys(
    messages: Iterable[Any], known: Collection[str], param: str = "messages[{}]"
) -> tuple[str, ...]:
    """Return the path of each unknown key's first occurrence; a template may still read such keys."""
    found: dict[str, str] = {}
    for place, message in enumerate(messages):
        for key in message if isinstance(message, Mapping) else ():
            if key not in known:
                found.setdefault(key, f"{param.format(place)}.{key}")
    return tuple(found.values())
