"""Tools for models whose template does not show them: the messages describe them, in the Hermes format.

Source of the format: Teknium et al. 2024, "Hermes 3 Technical Report"; most models have seen it in training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from llmd.chat.templates.template_messages import Message

_INSTRUCTIONS = """\
You may call functions. Their signatures, one JSON object a line:
<tools>
{tools}
</tools>
To call one, write a JSON object with its name and arguments between these tags, and nothing after it:
<tool_call>
{{"name": "function name", "arguments": {{"argument": "value"}}}}
</tool_call>"""


def tell_tools(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return prepared messages with tools in the system message, and calls and their results as text."""
    turns = list(_without_tool_turns(messages))
    if not tools:
        return turns
    system = _INSTRUCTIONS.format(tools="\n".join(_json(tool["function"]) for tool in tools))
    if turns and turns[0]["role"] == "system":
        first = turns.pop(0)
        system = "\n\n".join(filter(None, (first["content"], system)))
    return [{"role": "system", "content": system}, *turns]


def tools_in_system_message(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return prepared messages with ``tools`` as a JSON key of the system message, as Phi-4-mini expects."""
    if not tools:
        return list(messages)
    system = messages[0] if messages[0]["role"] == "system" else {"role": "system", "content": ""}
    rest = messages[1:] if messages[0]["role"] == "system" else messages
    return [{**system, "tools": _json([tool["function"] for tool in tools])}, *rest]


def _without_tool_turns(messages: Sequence[Message]) -> list[Message]:
    turns: list[Message] = []
    for is_answer, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_answer:
            answers = [f"<tool_response>\n{message['content']}\n</tool_response>" for message in group]
            turns.append({"role": "user", "content": "\n".join(answers)})
        else:
            turns += [_with_calls_as_text(message) for message in group]
    return turns


def _with_calls_as_text(message: Message) -> Message:
    if "tool_calls" not in message:
        return message
    calls = [call["function"] for call in message["tool_calls"]]
    written = [
        _json({"name": function.get("name"), "arguments": function.get("arguments") or {}})
        for function in calls
    ]
    texts = [message["content"], *(f"<tool_call>\n{one}\n</tool_call>" for one in written)]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": "\n".join(filter(None, texts))}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
