"""Converts input items to the messages that chat templates expect.

Output of the model is split into several items: consecutive reasoning, messages and calls become one
assistant message. Several texts of a message remain separate parts, which `prepare_messages` joins as the
model's template does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from llmd.chat.templates.message_keys import misspelt, unknown_keys
from llmd.chat.templates.text_parts import LINE_BREAK
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.custom_input import arguments_of
from llmd.server.dialects.openai.responses.summary import read_summary

ROLES = ("system", "developer", "user", "assistant")
MESSAGE_KEYS = ("type", "id", "role", "status", "content", "phase")
OUTPUT_KEYS = ("type", "id", "call_id", "name", "status", "output")
ADDITIONAL_TOOLS = "additional_tools"
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_THOUGHTS = {"reasoning_text": "text", "summary_text": "text", "text": "text"}
Message = dict[str, Any]


class Input(Struct, frozen=True):
    """The messages of a request."""

    messages: tuple[Message, ...]
    skipped: tuple[str, ...]
    """Items and keys of the input that are not among the messages."""


def given_items(fields: RequestFields) -> list[Any]:
    """Return ``input`` as items; a text becomes a user message.

    Raises:
        BadRequestError: it is missing, or neither a text nor a list.
    """
    given = fields.value("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise fields.invalid("input", "a text or a list of at least one item")
    return given


def read_items(items: Sequence[Any]) -> Input:
    """Convert items to messages.

    Raises:
        BadRequestError: an item is malformed, holds something other than text, or refers to another item.
    """
    reader = _Reader()
    for place, item in enumerate(items):
        reader.read(item, f"input[{place}]")
    if not reader.messages:
        raise invalid("input", "a text or a list with at least one message")
    return Input(tuple(reader.messages), tuple(reader.skipped))


class _Reader:
    """Converts items one after the other."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.skipped: list[str] = []

    def read(self, item: Any, param: str) -> None:
        if not isinstance(item, dict):
            raise invalid(param, "an object")
        match item.get("type", "message"):
            case "message":
                self._message(item, param)
            case "reasoning" | "compaction":
                self._extend(_state(item, param))
            case "function_call":
                self._call(item, param, _text(item, "arguments", param))
            case "custom_tool_call":
                self._call(item, param, arguments_of(_text(item, "input", param)))
            case "local_shell_call":
                named = {"name": "local_shell", **item}
                self._call(named, param, json.dumps(item.get("action") or {}))
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                self._output(item, param)
            case "item_reference":
                raise BadRequestError(
                    f"{param} refers to an item of an earlier response, but items are not kept",
                    code="unsupported_parameter",
                    param=param,
                    hint="send the item itself, or previous_response_id",
                )
            case "additional_tools":
                pass  # not a message; parsed by `read_tools`
            case kind:
                self.skipped.append(f"{param}.{kind}")

    def _message(self, item: Message, param: str) -> None:
        role = item.get("role")
        if role not in ROLES:
            raise invalid(f"{param}.role", f"one of {', '.join(ROLES)}", misspelt(item, MESSAGE_KEYS))
        self.skipped += unknown_keys([item], MESSAGE_KEYS, param)
        content = _required(item, "content", MESSAGE_KEYS, param)
        if content == []:
            raise invalid(f"{param}.content", "a text or a list of at least one part")
        texts = _texts(content, _TEXTS, f"{param}.content")
        if role == "assistant":
            self._extend({"content": _content(texts)})
        else:
            self.messages.append({"role": role, "content": _content(texts)})

    def _call(self, item: Message, param: str, arguments: str) -> None:
        function = {"name": _text(item, "name", param), "arguments": arguments}
        call = {"id": _text(item, "call_id", param), "type": "function", "function": function}
        self._extend({"tool_calls": [call]})

    def _output(self, item: Message, param: str) -> None:
        content = _content(_texts(_required(item, "output", OUTPUT_KEYS, param), _TEXTS, f"{param}.output"))
        # Shell calls used to be answered with the id of their item.
        name = "call_id" if "call_id" in item else "id"
        self.messages.append({"role": "tool", "tool_call_id": _text(item, name, param), "content": content})

    def _extend(self, said: Message) -> None:
        """Add to the assistant's message. After calls, a new message begins, unless more calls follow."""
        last = self.messages[-1] if self.messages else {}
        begins = last.get("role") != "assistant" or ("tool_calls" in last and "tool_calls" not in said)
        if begins:
            self.messages.append({"role": "assistant", "content": ""} | said)
            return
        for name, value in said.items():
            last[name] = _joined(name, last[name], value) if last.get(name) else value


def _state(item: Message, param: str) -> Message:
    """Return what an item that the user does not see adds to the assistant's message."""
    if item["type"] == "compaction":
        return {"content": read_summary(item.get("encrypted_content"), param)}
    thoughts = _texts(item.get("content") or item.get("summary") or [], _THOUGHTS, param)
    return {"reasoning_content": LINE_BREAK.join(thoughts)} if thoughts else {}


def invalid(param: str, expected: str, hint: str = "") -> BadRequestError:
    """Return the error for an invalid part of the input."""
    return BadRequestError(f"{param} must be {expected}", code="invalid_value", param=param, hint=hint)


def _required(item: Message, name: str, known: Sequence[str], param: str) -> Any:
    value = item.get(name)
    if value is None:
        raise invalid(f"{param}.{name}", "a text or a list of parts", misspelt(item, known))
    return value


def _text(item: Message, name: str, param: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise invalid(f"{param}.{name}", "a string")
    return value


def _texts(content: Any, known: dict[str, str], param: str) -> list[str]:
    """Return the non-empty texts of a content."""
    if content is None or isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        raise invalid(param, "a text or a list of parts")
    texts = [_part(part, known, f"{param}[{place}]") for place, part in enumerate(content)]
    return [text for text in texts if text]


def _content(texts: Sequence[str]) -> str | list[dict[str, str]]:
    """Return texts as the content of a chat message."""
    return [{"type": "text", "text": text} for text in texts] if len(texts) > 1 else "".join(texts)


def _joined(name: str, before: Any, after: Any) -> Any:
    """Merge a field of two items that become one message."""
    match name:
        case "content":
            return _content([*_texts(before, _TEXTS, name), *_texts(after, _TEXTS, name)])
        case "reasoning_content":
            return LINE_BREAK.join((before, after))
        case _:
            return before + after


def _part(part: Any, known: dict[str, str], param: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str) or kind not in known:
        raise BadRequestError(
            f"{param} is of type {kind!r}, but this model reads only text",
            code="unsupported_content",
            param=param,
            hint="remove it, or send its text",
        )
    return _text(part, known[kind], param)
