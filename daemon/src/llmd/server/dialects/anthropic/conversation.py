"""Converts Anthropic conversations to the messages that chat templates expect.

Tool results arrive as blocks of a user message; they become separate messages before the rest of it.
Consecutive messages of one role are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from llmd.chat.model_text import ChatPrompt
from llmd.chat.templates.message_keys import misspelt, unknown_keys
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.anthropic.blocks import (
    BETWEEN_BLOCKS,
    Block,
    block_text,
    invalid,
    read_blocks,
    texts,
)

ROLES = ("user", "assistant", "system")
KEYS = ("role", "content")
FAILED = "Error: "
Message = dict[str, Any]


class Conversation(Struct, frozen=True):
    """The messages for a chat template."""

    messages: tuple[Message, ...]
    skipped: tuple[str, ...]
    """Blocks and keys of the request that are not among the messages."""

    @property
    def ends_open(self) -> bool:
        """Whether the answer continues the last message."""
        return bool(self.messages[-1]["role"] == "assistant")

    def prompt(self) -> ChatPrompt:
        """Return the conversation as a prompt."""
        return ChatPrompt(self.messages, not self.ends_open, self.ends_open)


def read_conversation(fields: RequestFields) -> Conversation:
    """Parse the conversation of a request; ``system`` comes first.

    Raises:
        BadRequestError: a message is malformed, holds something other than text, or ends with a call
            without result.
    """
    given = fields.value("messages")
    if not isinstance(given, list) or not given:
        raise fields.invalid("messages", "a list of at least one message")
    skipped: list[str] = []
    messages = _system(fields.value("system"))
    for place, message in enumerate(given):
        for turn in _turns(message, f"messages.{place}", skipped):
            _append(messages, turn)
    if not messages:
        raise fields.invalid("messages", "a list of messages with content")
    if messages[-1].get("tool_calls"):
        raise BadRequestError(
            "the last message calls tools, but no tool_result answers it",
            code="invalid_value",
            param=f"messages.{len(given) - 1}",
        )
    return Conversation(tuple(messages), tuple(skipped))


def _system(system: Any) -> list[Message]:
    content = [] if system is None else [text for text in texts(system, "system") if text]
    return [{"role": "system", "content": BETWEEN_BLOCKS.join(content)}] if content else []


def _turns(message: Any, param: str, skipped: list[str]) -> Iterator[Message]:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ROLES:
        raise invalid(f"{param}.role", f"one of {', '.join(ROLES)}", _misspelt(message))
    skipped += unknown_keys([message], KEYS, param)
    content = message.get("content")
    if content is None or (content == [] and role != "assistant"):
        raise invalid(
            f"{param}.content", "a string or a list of at least one content block", _misspelt(message)
        )
    blocks = []
    for block in read_blocks(content, f"{param}.content"):
        if block.is_skipped:
            skipped.append(f"{block.param}.{block.type}")
        else:
            blocks.append(block)
    if role == "assistant":
        yield _assistant_turn(blocks)
        return
    yield from (_tool_turn(block) for block in blocks if block.type == "tool_result")
    paragraphs = [block_text(block) for block in blocks if block.type != "tool_result"]
    if paragraphs:
        yield {"role": role, "content": BETWEEN_BLOCKS.join(paragraphs)}


def _misspelt(message: Any) -> str:
    return misspelt(message, KEYS) if isinstance(message, dict) else ""


def _tool_turn(block: Block) -> Message:
    content = block.fields.get("content")
    text = BETWEEN_BLOCKS.join([] if content is None else texts(content, f"{block.param}.content"))
    failed = block.fields.get("is_error") is True
    call_id = block.text_field("tool_use_id")
    return {"role": "tool", "tool_call_id": call_id, "content": FAILED + text if failed else text}


def _assistant_turn(blocks: list[Block]) -> Message:
    """Texts are joined without a separator: the answer may continue in the middle of a word."""
    plain = [block for block in blocks if block.type not in {"thinking", "tool_use"}]
    turn: Message = {"role": "assistant", "content": "".join(block_text(block) for block in plain)}
    thoughts = [block.text_field("thinking") for block in blocks if block.type == "thinking"]
    calls = [_call(block) for block in blocks if block.type == "tool_use"]
    return (
        turn
        | ({"reasoning_content": "".join(thoughts)} if any(thoughts) else {})
        | ({"tool_calls": calls} if calls else {})
    )


def _call(block: Block) -> dict[str, Any]:
    arguments = block.fields.get("input")
    if arguments is not None and not isinstance(arguments, dict):
        raise invalid(f"{block.param}.input", "an object")
    function = {"name": block.text_field("name"), "arguments": arguments or {}}
    return {"id": block.text_field("id"), "type": "function", "function": function}


def _append(messages: list[Message], turn: Message) -> None:
    """Append a turn, or merge it into the last message if that has the same role."""
    last = messages[-1] if messages else {}
    if last.get("role") != turn["role"] or turn["role"] == "tool":
        messages.append(turn)
        return
    between = "" if turn["role"] == "assistant" else BETWEEN_BLOCKS
    joined = {**last, **turn, "content": between.join(filter(None, (last["content"], turn["content"])))}
    for name in ("reasoning_content", "tool_calls"):
        if name in last and name in turn:
            joined[name] = last[name] + turn[name]
    messages[-1] = joined
