"""Llama 4 and others: an answer that is a list of calls in Python, ``[name(key=value, …), …]``."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from llmd.api.parsing import CallFormat, CallGrammar, CallReader, ChoiceTerm, SchemaTerm, Term, Tool
from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_calls import follows
from llmd.builtin.parsers.json_text import next_item, skip_space
from llmd.builtin.parsers.parameters import joined, required_of, schemas_of
from llmd.builtin.parsers.script_reader import ScriptReader

BEGIN, END = "<|python_start|>", "<|python_end|>"
_NAME = re.compile(r"[A-Za-z0-9_.:/-]*")
_PLAIN = re.compile(r"""[^"'\\()\[\]{}]*""")
_WORDS = {"true": True, "false": False, "null": None}
_LITERALS: Mapping[str, tuple[Term, ...]] = {
    "boolean": (ChoiceTerm((("True",), ("False",))),),
    "null": ("None",),
}


def load() -> CallFormat:
    return CallFormat(_open, _grammar, marks=(BEGIN, END))


def _open(tools: Sequence[Tool]) -> CallReader:
    names = {tool.name for tool in tools}
    return ScriptReader([BEGIN], partial(_calls, names), at_start=True)


def _calls(names: Collection[str], cursor: Cursor, _mark: str) -> Script[None]:
    yield from skip_space(cursor)
    yield from cursor.expect("[")
    yield from skip_space(cursor)
    more = True
    while more:
        yield from _call(cursor, names)
        more = yield from next_item(cursor, "]")
    yield from follows(cursor, END)


def _call(cursor: Cursor, names: Collection[str]) -> Script[None]:
    name = yield from cursor.run(_NAME)
    if name not in names or (yield from cursor.peek()) != "(":
        raise MalformedError
    start = cursor.place
    yield from _balanced(cursor)
    arguments = _arguments(cursor.text(start, cursor.place))
    cursor.begin_call(name)
    cursor.arguments(arguments)


def _balanced(cursor: Cursor) -> Script[None]:
    """Read from the next bracket up to the one that closes it."""
    depth = 0
    while True:
        char = yield from cursor.read()
        if char in {'"', "'"}:
            yield from _quoted(cursor, char)
        elif char in {"(", "[", "{"}:
            depth += 1
        elif char in {")", "]", "}"}:
            depth -= 1
        else:
            raise MalformedError
        if depth == 0:
            return
        yield from cursor.run(_PLAIN)


def _quoted(cursor: Cursor, quote: str) -> Script[None]:
    while char := (yield from cursor.read()):
        if char == quote:
            return
        if char == "\\":
            yield from cursor.read()


def _arguments(text: str) -> str:
    """Return the JSON for ``(key=value, …)``."""
    try:
        call = ast.parse(f"_{text}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise MalformedError
        values = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords if keyword.arg}
        return (
            json.dumps(values, ensure_ascii=False, allow_nan=False)
            .encode("utf-16", "surrogatepass")
            .decode("utf-16")
        )
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise MalformedError from error


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {str(_value(key)): _value(value) for key, value in zip(keys, values, strict=True) if key}
        case _:
            return ast.literal_eval(node)


def _grammar(tools: Sequence[Tool]) -> CallGrammar:
    calls = [(f"{tool.name}(", *joined(list(_members(tool)), ", "), ")") for tool in tools]
    return CallGrammar(calls, trigger="", opening="[", separator=", ", closing="]", at_start=True)


def _members(tool: Tool) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    required = required_of(tool.parameters)
    for name, schema in schemas_of(tool).items():
        value = _LITERALS.get(str(schema.get("type")), (SchemaTerm(schema),))
        yield name in required, (f"{name}=", *value)
