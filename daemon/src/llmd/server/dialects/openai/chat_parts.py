"""Converts the parts of an answer to OpenAI's messages and deltas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.server.dialects.openai.chat_calls import CallDeltas, CallForms

PLAIN = CallForms()


def deltas_of(parts: Iterable[AnswerPart], calls: CallDeltas) -> Iterator[dict[str, Any]]:
    """Yield the deltas of further parts of a streamed answer."""
    for part in parts:
        if isinstance(part, CallStart):
            yield from _known(calls.rest())
        match part:
            case Text(text):
                yield {"content": text}
            case Reasoning(text):
                yield _reasoning(text)
            case CallStart(index, name):
                yield calls.start(index, name)
            case CallArguments(index, json):
                yield from _known(calls.more(index, json))


def last_deltas(calls: CallDeltas) -> Iterator[dict[str, Any]]:
    """Yield the deltas at the end of an answer."""
    yield from _known(calls.rest())


def message_of(parts: Iterable[AnswerPart], forms: CallForms = PLAIN) -> dict[str, Any]:
    """Return a whole answer as a message."""
    whole = _Whole.of(parts)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if whole.calls and not whole.text else whole.text,
        "refusal": None,
    }
    if whole.reasoning:
        message |= _reasoning(whole.reasoning)
    if whole.calls and forms.is_legacy:
        name, arguments = whole.calls[0]
        message["function_call"] = {"name": name, "arguments": arguments}
    elif whole.calls:
        message["tool_calls"] = [forms.whole(name, arguments) for name, arguments in whole.calls]
    return message


def finish_of(finish: str | None, *, has_calls: bool, is_legacy: bool = False) -> str | None:
    """Return the finish reason. An answer that stopped by itself and has calls stopped for them."""
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
    """Return both keys that clients look for: vLLM's and Ollama's, and llama.cpp's and DeepSeek's."""
    return {"reasoning": text, "reasoning_content": text}


def _known(delta: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if delta is not None:
        yield delta
