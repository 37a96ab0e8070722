"""What stands between the texts of one message that comes in several parts.

Templates that go through the parts of a content decide it themselves: the list is what such a model was trained on, and
what others hand to it (vLLM as content format "openai", llama.cpp as typed content, transformers always). Most of them
put nothing between. For templates that know only strings, vLLM (``chat_utils.py``) and llama.cpp (``common/chat.cpp``)
put a line break between; Ollama makes messages of the parts, which its templates join with an empty line.

Here every content is one string. What a template puts between two parts of a role is found by rendering two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LINE_BREAK = "\n"
Separator = Callable[[str], str]
"""What stands between two texts of a message of a role."""

Conversation = list[dict[str, Any]]
_FIRST, _SECOND = "part1of2", "part2of2"
_QUESTION = {"role": "user", "content": "question"}
_CALL_ID = "abcdefghi"
_CALL = {"id": _CALL_ID, "type": "function", "function": {"name": "look", "arguments": {}}}


def line_break(_role: str) -> str:
    """The separator of templates that know only strings."""
    return LINE_BREAK


def find_separator(render: Callable[[Conversation], str | None], role: str) -> str:
    """What a template puts between two parts; ``render`` gives None for a conversation that the template refuses.

    A template that writes the list itself, or drops a part, reads strings.
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
    """The shortest conversation with a message of that role."""
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
