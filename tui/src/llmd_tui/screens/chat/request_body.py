"""The request that a chat sends."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from llmd_tui.screens.chat.generation_settings import NUMBERS
from llmd_tui.screens.chat.store.records import Content, Message, Settings
from llmd_tui.screens.chat.store.sent_text import sent_text
from llmd_tui.screens.chat.tools import as_request

ROUTE = "/v1/chat/completions"
COUNT_ROUTE = f"{ROUTE}/input_tokens"
UNIX = "unix:"


def chat_body(
    settings: Settings, path: Sequence[Message], *, first: int | None = None, draft: Content | None = None
) -> dict[str, Any]:
    """Return the body of a request that answers the last message, or continues it if it is an answer.

    Args:
        settings: The settings of the chat.
        path: The branch to answer.
        first: Messages with a lower number were dropped.
        draft: A question to add at the end.
    """
    messages: list[dict[str, Any]] = []
    if settings.system:
        messages.append({"role": "system", "content": settings.system})
    messages += [_message(one) for one in sent(path, first)]
    if draft is not None:
        messages.append({"role": "user", "content": sent_text(draft)})
    return {"model": settings.model, "messages": messages} | _fields(settings)


def sent(path: Sequence[Message], first: int | None = None) -> list[Message]:
    """Return the messages that are sent: from number ``first`` on, without questions that got no answer."""
    kept: list[Message] = []
    for one in path:
        if first is not None and one.message_id < first:
            continue
        if not one.is_left_out:
            kept.append(one)
        else:
            _drop_turn(kept)
    return kept


def _drop_turn(kept: list[Message]) -> None:
    """Remove a question that got no answer, with the calls of tools since then."""
    if kept and kept[-1].role != "assistant":
        while kept and kept.pop().role != "user":
            pass


def _message(one: Message) -> dict[str, Any]:
    message: dict[str, Any] = {"role": one.role, "content": sent_text(one.content)}
    if one.role == "tool":
        message["tool_call_id"] = one.content.calls[0].call_id
    elif one.content.calls:
        message["tool_calls"] = [as_request(call) for call in one.content.calls]
    return message


def streamed(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with streaming and its usage asked for."""
    return body | {"stream": True, "stream_options": {"include_usage": True}}


def as_curl(body: dict[str, Any], address: str) -> str:
    """Return the request as a command line; a key is not part of it."""
    json = msgspec.json.encode(body).decode()
    if address.startswith(UNIX):
        target = f"--unix-socket {shlex.quote(address.removeprefix(UNIX))} http://llmd{ROUTE}"
    else:
        base = address if "://" in address else f"http://{address}"
        target = f"{base.rstrip('/')}{ROUTE}"
    return f"curl {target} -H 'Content-Type: application/json' -d {shlex.quote(json)}"


def _fields(settings: Settings) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: value for name in NUMBERS if (value := getattr(settings, name)) is not None
    }
    if settings.thinking is not None:
        # The name of the switch depends on the family of the model.
        switch = {"enable_thinking": settings.thinking, "thinking": settings.thinking}
        fields["chat_template_kwargs"] = switch
    if settings.schema is not None:
        schema = {"name": "answer", "schema": settings.schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if settings.tools:
        fields["tools"] = list(settings.tools)
    return fields
