"""Find the separator between the text parts of one message.

Templates that loop over content parts choose it themselves: such models were trained on lists, and other
software passes lists (vLLM with content format "openai", llama.cpp as typed content, transformers always).
Most of these templates use no separator. For templates that expect strings, vLLM (``chat_utils.py``) and
llama.cpp (``common/chat.cpp``) join with a line break; Ollama turns each part into a message, and its
templates join these with an empty line.

llmd passes every content as one string. It finds the separator of a template and role by rendering two parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LINE_BREAK = "\n"
Separator = Callable[[str], str]
"""Return the separator between two texts of a message, given its role."""

Conversation = list[dict[str, Any]]
_FIRST, _SECOND = "part1of2", "part2of2"
_QUESTION = {"role": "user", "content": "question"}
_CALL_ID = "abcdefghi"
_CALL = {"id": _CALL_ID, "type": "function", "function": {"name": "look", "arguments": {}}}


def line_break(_role: str) -> str:
    """Return the separator for templates that expect strings."""
    return LINE_BREAK


def find_separator(render: Callable[[Conversation], str | None], role: str) -> str:
    """Return what a template writes between two parts; a line break if it expects strings.

    ``render`` returns None if the template rejects a conversation. A template that prints the list itself or
    drops a part expects strings.
    """
    parts = [{"type": "text", "text": text} for text in (_FIRST, _SECOND)]
    from_parts = render(_conversation(role, parts))
    if from_parts is None:
        return LINE_BREAK
    between, second, _ = from_parts.partition(_FIRST)[2].partition(_SECOND)
    if not second or render(_conversation(role, f"{_FIRST}{between}{_SECOND}")) != from_parts:
        return LINE_BREAK
    return between


def _conversation(role: str, content: Any) -> Conversation:
    """Return the shortest conversation with a message of this role."""
    message = {"role": role, "content": content}
    match role:
        case "assistant":
            return [_QUESTION, message, _QUESTION]
        case "tool":
            calling = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
            return [_QUESTION, calling, {**message, "tool_call_id": _CALL_ID, "name": "look"}]
        case "user":
            return [message]
        case _:
            return [message, _QUESTION]
