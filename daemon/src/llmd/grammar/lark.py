"""Convert grammars of every kind to llguidance's Lark, and write parts of Lark grammars."""

from __future__ import annotations

import json
from typing import Any

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.gbnf import lark_of_gbnf
from llmd.grammar.json_schema import enforceable

# Without this llguidance tokenizes forced text and allows only that tokenization. The engine has no
# tokenizer, and the model knows best how to tokenize a text.
_HEADER = '%llguidance {"no_forcing": true}\n'

_JSON_OPTIONS = {
    "whitespace_flexible": True,
    # Compact, with single spaces, or indented. If unbounded, small models write spaces until the token limit.
    "whitespace_pattern": r"( |\n {0,32})",
    # Only one spelling per character: "\u0061" would be the property "a", but the schema would not match it.
    "json_allowed_escapes": '"\\bfnrt',
}

# White space between reasoning and a constrained answer. Bounded for the same reason as in JSON.
_SPACE = r"/\s{0,8}/"


def lark_of(grammar: Grammar) -> str:
    """Return the whole grammar, with ``start`` as its first rule.

    Raises:
        GrammarError: it is malformed, or has a feature that cannot be enforced.
    """
    if grammar.kind == "lark":
        return _HEADER + grammar.text
    if grammar.kind == "gbnf":
        return _HEADER + lark_of_gbnf(grammar.text)
    return f"{_HEADER}start: {_expression(grammar)}\n"


def literal(text: str) -> str:
    """Return an expression for exactly this text."""
    return json.dumps(text)


def control_token(token_id: int) -> str:
    """Return an expression for exactly this token."""
    return f"<[{token_id}]>"


def regular_expression(pattern: str) -> str:
    r"""Return an expression for a regular expression of JavaScript: ``\d`` and ``\w`` are ASCII."""
    from llguidance import regex_to_lark

    return f"/{regex_to_lark(pattern, 'dw')}/"


def json_value(schema: Any) -> str:
    """Return an expression for a value of a JSON schema.

    Raises:
        GrammarError: the schema has a feature that cannot be enforced.
    """
    prepared = enforceable(schema)
    options = {"x-guidance": _JSON_OPTIONS}
    return "%json " + json.dumps(prepared | options if isinstance(prepared, dict) else _boolean(prepared))


def embedded(grammar: Grammar) -> str:
    """Return a whole grammar as an expression inside a rule."""
    if grammar.kind in {"lark", "gbnf"}:
        return "%lark {\n" + lark_of(grammar) + "\n}"
    return _expression(grammar)


def after_reasoning(
    grammar: Grammar, *, begin: str | None, end: str | int, after: str = "", budget: int | None = None
) -> Grammar:
    """Return a grammar that applies after the model's reasoning, which stays unconstrained.

    ``begin`` is an expression for the mark before the reasoning, ``end`` the mark behind it, a text or a
    control token id, and ``after`` an expression for what then precedes the answer. An answer may omit
    reasoning, unless ``begin`` is None: then the prompt has already opened it. After ``budget`` tokens of
    reasoning only ``end`` may follow, if it is a control token; a text can be tokenized in many ways.
    """
    follows = after or _SPACE
    if isinstance(end, int) and budget is not None:
        thought = f"thought {control_token(end)}" if budget else control_token(end)
        reasoning = f"reasoning: {thought}\nthought[max_tokens={max(budget, 1)}]: /(.|\\n)*/"
    elif isinstance(end, int):
        reasoning = f"reasoning: /(.|\\n)*/ {control_token(end)}"
    else:
        reasoning = f"reasoning[suffix={literal(end)}]: /(.|\\n)*/"
    if begin is None:
        start = f"start: reasoning {follows} answer"
    else:
        start = f"start: ({begin} reasoning {follows})? answer"
    return Grammar("lark", f"{start}\n{reasoning}\nanswer: {embedded(grammar)}\n")


def behind_text(begin: str, grammar: Grammar) -> Grammar:
    """Return a grammar for what the expression ``begin`` matches, and then ``grammar``."""
    return Grammar("lark", f"start: {begin} answer\nanswer: {embedded(grammar)}\n")


def any_text() -> Grammar:
    """Return a grammar that matches every text."""
    return Grammar("lark", "start: /(.|\\n)*/\n")


def _expression(grammar: Grammar) -> str:
    if grammar.kind == "json_schema":
        return json_value(_parsed(grammar.text, "a JSON schema"))
    if grammar.kind == "json_object":
        return json_value({"type": "object"})
    if grammar.kind == "choice":
        return _choice(_parsed(grammar.text, "a list of choices"))
    return regular_expression(grammar.text)


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{what} is not JSON: {error}", hint="correct it") from error


def _choice(choices: Any) -> str:
    if not isinstance(choices, list) or not choices or not all(isinstance(one, str) for one in choices):
        raise GrammarError("choices are not a list of one or more strings", hint='send ["yes", "no"]')
    return " | ".join(map(literal, choices))


def _boolean(schema: Any) -> dict[str, Any]:
    if schema is not True:
        raise GrammarError("the schema allows no value at all", hint="send a schema that allows some value")
    return {"x-guidance": _JSON_OPTIONS}
