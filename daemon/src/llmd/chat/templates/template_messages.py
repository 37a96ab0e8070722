"""Convert conversations to the form that chat templates expect, and to fallbacks if a template rejects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from llmd.api.errors import RequestError
from llmd.chat.templates.message_keys import CHAT_KEYS, REASONING_KEYS, misspelt, require_content
from llmd.chat.templates.text_parts import Separator, line_break

Message = dict[str, Any]

_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def prepare_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    keep_developer: bool = False,
    separator: Separator = line_break,
) -> list[Message]:
    """Normalize messages for templates.

    Content becomes a string: text parts are joined with the ``separator`` of the role, null becomes empty.
    The role ``developer`` becomes ``system`` unless ``keep_developer``, ``function`` becomes ``tool``, and a
    ``function_call`` becomes one of ``tool_calls``. Arguments of tool calls become objects, a tool message
    gets the name of the called tool, and reasoning moves to ``reasoning_content`` and ``thinking``, of which
    templates read one.

    Raises:
        RequestError: a message has no role, no content, content that is not text, or arguments that are not a
            JSON object.
    """
    if not messages:
        raise RequestError("there are no messages", param="messages", hint="send at least one message")
    prepared = [
        _prepare(message, f"messages[{place}]", keep_developer, separator)
        for place, message in enumerate(messages)
    ]
    _name_answers(prepared)
    return prepared


def _name_answers(messages: list[Message]) -> None:
    """Add the name of the called tool to each tool message."""
    names = {
        call["id"]: call["function"].get("name")
        for m in messages
        for call in m.get("tool_calls", ())
        if "id" in call
    }
    for message in messages:
        name = names.get(message.get("tool_call_id"))
        if message["role"] == "tool" and name is not None:
            message.setdefault("name", name)


def foldings(messages: list[Message]) -> Iterator[list[Message]]:
    """Yield the conversation, then fallbacks for templates that reject it.

    They have one system message or none, then no text beside calls that have reasoning.
    """
    yield from _system_foldings(messages)
    bare = [_with_text_as_reasoning(message) for message in messages]
    if bare != messages:
        yield from _system_foldings(bare)


def _with_text_as_reasoning(message: Message) -> Message:
    reasoning = message.get("thinking")
    if not (reasoning and message["content"] and message.get("tool_calls")):
        return message
    joined = f"{reasoning}\n\n{message['content']}"
    return {**message, "reasoning_content": joined, "thinking": joined, "content": ""}


def _system_foldings(messages: list[Message]) -> Iterator[list[Message]]:
    yield messages
    systems = [place for place, message in enumerate(messages) if message["role"] == "system"]
    if not systems:
        return
    text = "\n\n".join(filter(None, (messages[place]["content"] for place in systems)))
    others = [message for message in messages if message["role"] != "system"]
    if systems != [0]:
        yield [{"role": "system", "content": text}, *others]
    yield _fold_into_first_user(text, others)


def _fold_into_first_user(text: str, messages: list[Message]) -> list[Message]:
    place = next((place for place, message in enumerate(messages) if message["role"] == "user"), None)
    if place is None:
        return [{"role": "user", "content": text}, *messages]
    user = messages[place]
    content = "\n\n".join(filter(None, (text, user["content"])))
    return [*messages[:place], {**user, "content": content}, *messages[place + 1 :]]


def _prepare(message: Any, param: str, keep_developer: bool, separator: Separator) -> Message:  # noqa: FBT001
    message = message if isinstance(message, Mapping) else {}
    role = message.get("role")
    if not isinstance(role, str):
        raise RequestError(
            f"the role is {role!r}",
            param=f"{param}.role",
            hint=misspelt(message, CHAT_KEYS) or "use system, user, assistant or tool",
        )
    require_content(message, param)
    roles = {"function": "tool"} if keep_developer else {"function": "tool", "developer": "system"}
    role = roles.get(role, role)
    texts = _texts(message.get("content"), f"{param}.content")
    _check_id(message.get("tool_call_id"), f"{param}.tool_call_id")
    kept = {key: value for key, value in message.items() if key not in REASONING_KEYS and value is not None}
    prepared = {
        **kept,
        "role": role,
        "content": separator(role).join(texts) if len(texts) > 1 else "".join(texts),
    }
    reasoning = next((message[key] for key in REASONING_KEYS if isinstance(message.get(key), str)), None)
    if reasoning is not None:
        prepared["reasoning_content"] = prepared["thinking"] = reasoning
    if "tool_calls" in kept:
        prepared["tool_calls"] = _tool_calls(kept["tool_calls"], f"{param}.tool_calls")
    elif "function_call" in kept:
        call = {"type": "function", "function": prepared.pop("function_call")}
        prepared["tool_calls"] = [_tool_call(call, f"{param}.function_call")]
    return prepared


def _texts(content: Any, param: str) -> list[str]:
    """Return the texts of a message's content; of a list only those that are not empty."""
    if content is None or isinstance(content, str):
        return [content or ""]
    if not isinstance(content, list):
        raise RequestError(
            f"the content is a {type(content).__name__}", param=param, hint="send a string or a list of parts"
        )
    texts = [_part_text(part, f"{param}[{place}]") for place, part in enumerate(content)]
    return [text for text in texts if text]


def _part_text(part: Any, param: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get(_TEXT_PARTS.get(kind)) if isinstance(kind, str) else None
    if not isinstance(text, str):
        raise RequestError(
            f"a part of type {kind!r} is not text", param=param, hint="this model reads only text parts"
        )
    return text


def _tool_calls(calls: Any, param: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise RequestError("tool_calls is not a list", param=param, hint="send back the list from the answer")
    return [_tool_call(call, f"{param}[{place}]") for place, call in enumerate(calls)]


def _tool_call(call: Any, param: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise RequestError(
            "a tool call has no function", param=param, hint="send back the tool call from the answer"
        )
    _check_id(call.get("id"), f"{param}.id")
    arguments = _arguments(function.get("arguments"), f"{param}.function.arguments")
    return {**call, "function": {**function, "arguments": arguments}}


def _check_id(value: Any, param: str) -> None:
    if value is not None and not isinstance(value, str):
        raise RequestError(
            f"the id of a tool call is a {type(value).__name__}, not a string",
            param=param,
            hint="send back the id from the answer",
        )


def _arguments(arguments: Any, param: str) -> dict[str, Any]:
    try:
        if isinstance(arguments, str):
            return msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        return msgspec.convert(arguments or {}, dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as exc:
        raise RequestError(
            f"the arguments are not a JSON object: {exc}",
            param=param,
            hint="send back the arguments from the answer",
        ) from exc
