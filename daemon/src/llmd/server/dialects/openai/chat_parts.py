"""The parts of an answer as OpenAI's messages and deltas have them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text


def delta_of(part: AnswerPart, *, is_legacy: bool = False) -> dict[str, Any]:
    """A part of a streamed answer; clients join strings, so that names and ids go out once.

    ``is_legacy``: a call is a ``function_call``, of which there is one.
    """
    match part:
        case Text(text):
            return {"content": text}
        case Reasoning(text):
            return _reasoning(text)
        case CallStart(_, name) if is_legacy:
            return {"function_call": {"name": name, "arguments": ""}}
        case CallArguments(_, json) if is_legacy:
            return {"function_call": {"arguments": json}}
        case CallStart(index, name):
            return {"tool_calls": [{"index": index, **_call(name, "")}]}
        case CallArguments(index, json):
            return {"tool_calls": [{"index": index, "function": {"arguments": json}}]}


def message_of(parts: Iterable[AnswerPart], *, is_legacy: bool = False) -> dict[str, Any]:
    """A whole answer."""
    whole = _Whole.of(parts)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if whole.calls and not whole.text else whole.text,
        "refusal": None,
    }
    if whole.reasoning:
        message |= _reasoning(whole.reasoning)
    if whole.calls and is_legacy:
        name, arguments = whole.calls[0]
        message["function_call"] = {"name": name, "arguments": arguments}
    elif whole.calls:
        message["tool_calls"] = [_call(name, arguments) for name, arguments in whole.calls]
    return message


def finish_of(finish: str | None, *, has_calls: bool, is_legacy: bool = False) -> str | None:
    """An answer that ended by itself after a call ended for it; one that was cut was cut."""
    if finish != "stop" or not has_calls:
        return finish
    return "function_call" if is_legacy else "tool_calls"


class _Whole(Struct, frozen=True):
    text: str
    reasoning: str
    calls: list[tuple[str, str]]

    @classmethod
    def of(cls, parts: Iterable[AnswerPart]) -> _Whole:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[tuple[str, list[str]]] = []
        for part in parts:
            match part:
                case Text(text):
                    texts.append(text)
                case Reasoning(text):
                    thoughts.append(text)
                case CallStart(_, name):
                    calls.append((name, []))
                case CallArguments(_, json):
                    calls[-1][1].append(json)
        joined = [(name, "".join(arguments)) for name, arguments in calls]
        return cls("".join(texts), "".join(thoughts), joined)


def _reasoning(text: str) -> dict[str, Any]:
    """Under both names that clients look for: vLLM's and Ollama's, llama.cpp's and DeepSeek's."""
    return {"reasoning": text, "reasoning_content": text}


def _call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}
