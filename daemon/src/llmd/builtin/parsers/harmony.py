"""Harmony, the format of gpt-oss: an answer is a sequence of messages, each with a channel.

A message is a header, ``<|message|>`` and content. The header names the channel (``analysis``, ``commentary``
or ``final``) and, of a call, the tool. The prompt ends with ``<|start|>assistant``: the first header is the
rest of one.

Source: OpenAI 2025, "OpenAI Harmony Response Format".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from llmd.api.parsing import (
    CallFormat,
    CallGrammar,
    CallReader,
    SchemaTerm,
    Tool,
)
from llmd.api.parts import Reasoning
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import read_object, skip_space
from llmd.builtin.parsers.script_reader import ScriptReader

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
BEGINS, ENDS = (START, CHANNEL), (END, CALL, RETURN)
NEXT = f"{START}assistant"
FINAL = f"{CHANNEL}final{MESSAGE}"
FUNCTIONS = "functions."
TO = ("to=", " to=")
"""The tool may come before the channel."""

_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def load() -> CallFormat:
    marks = (*BEGINS, CONSTRAIN, MESSAGE, *ENDS)
    return CallFormat(_open, _grammar, marks, ends=(CALL,), text_begin=FINAL)


def _open(tools: Sequence[Tool]) -> CallReader:
    return ScriptReader([*BEGINS, *ENDS], partial(_message, can_call=bool(tools)), at_start=True)


def _message(cursor: Cursor, mark: str, *, can_call: bool) -> Script[None]:
    """Read a header, and the content unless it is text; ``mark`` is what began it, or ended a message."""
    if mark in ENDS:
        return
    begin = mark
    if not mark:
        begin = yield from _first_of(cursor, TO)
        if not begin:
            return
    header = begin + (yield from cursor.until(MESSAGE))
    recipient, channel = _RECIPIENT.search(header), _CHANNEL.search(header)
    if recipient is not None and can_call:
        yield from _call(cursor, recipient[1].removeprefix(FUNCTIONS))
    elif channel is not None and channel[1] == "analysis":
        cursor.settle()
        yield from cursor.text_until(ENDS, Reasoning)


def _first_of(cursor: Cursor, literals: Sequence[str]) -> Script[str]:
    for literal in literals:
        if (yield from cursor.accept(literal)):
            return literal
    return ""


def _call(cursor: Cursor, name: str) -> Script[None]:
    yield from skip_space(cursor)
    if (yield from cursor.peek()) != "{":
        raise MalformedError
    cursor.begin_call(name)
    yield from cursor.arguments_from(read_object(cursor))


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [
        (f"{FUNCTIONS}{tool.name} {CONSTRAIN}json{MESSAGE}", SchemaTerm(tool.parameters)) for tool in tools
    ]
    trigger = f"{CHANNEL}commentary to="
    return CallGrammar(calls, trigger=trigger, separator=f"{CALL}{NEXT}{trigger}")
