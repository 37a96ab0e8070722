"""Tools for models whose template does not show them: the messages describe them, and calls are text.

Calls are written as the model's parser reads them, or in the form of Hermes if it has none. Source of that
form: Teknium et al. 2024, "Hermes 3 Technical Report"; most models have seen it in training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from llmd.api.parsing import CallFormat
from llmd.chat.templates.template_messages import Message
from llmd.chat.tools.written_calls import NamedCall, written_calls

_INSTRUCTIONS = """\
You may call functions. Their signatures, one JSON object a line:
<tools>
{tools}
</tools>
To call one, write its name and arguments in this form, and nothing after it:
{example}"""
_EXAMPLE = ("function name", {"argument": "value"})


def tell_tools(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], form: CallFormat | None
) -> list[Message]:
    """Return prepared messages with tools in the system message, and calls and their results as text."""
    turns = list(_without_tool_turns(messages, form))
    if not tools:
        return turns
    signatures = "\n".join(_json(tool["function"]) for tool in tools)
    system = _INSTRUCTIONS.format(tools=signatures, example=_as_text([_EXAMPLE], form))
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


def _without_tool_turns(messages: Sequence[Message], form: CallFormat | None) -> list[Message]:
    turns: list[Message] = []
    for is_answer, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_answer:
            answers = [f"<tool_response>\n{message['content']}\n</tool_response>" for message in group]
            turns.append({"role": "user", "content": "\n".join(answers)})
        else:
            turns += [_with_calls_as_text(message, form) for message in group]
    return turns


def _with_calls_as_text(message: Message, form: CallFormat | None) -> Message:
    if "tool_calls" not in message:
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    calls = [(str(function.get("name")), function.get("arguments") or {}) for function in functions]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    texts = (message["content"], _as_text(calls, form) if calls else "")
    return {**rest, "content": "\n".join(filter(None, texts))}


def _as_text(calls: Sequence[NamedCall], form: CallFormat | None) -> str:
    if form is not None:
        return written_calls(form, calls)
    written = [_json({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in written)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
