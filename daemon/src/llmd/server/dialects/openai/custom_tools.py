"""Custom tools of the Chat and Responses APIs.

For the model, they are functions with one text, optionally constrained by a grammar.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from llmd.api.errors import GrammarError
from llmd.grammar.lark_pattern import pattern_of_lark
from llmd.requests.fields import BadRequestError
from llmd.server.dialects.openai.custom_input import INPUT

CALLED = ("function", "custom")
"""The kinds of tools that a model can call."""
_ANCHORS = re.compile(r"\A\^|(?<!\\)\$\Z")
"""A pattern always covers the whole text; some model families expect it without anchors."""
_FORMS = '{"type": "text"}, or a grammar whose syntax is lark or regex'


class InputFormat(Struct, frozen=True):
    """The format of a tool's input."""

    syntax: Literal["lark", "regex"] | None = None
    """The kind of grammar; None: any text."""
    definition: str = ""
    """The grammar as the client sent it."""
    pattern: str | None = None
    """The grammar as a regular expression; None: any text."""

    def shown_parameters(self) -> dict[str, Any]:
        """Return the parameters that the model reads, with the grammar as the client sent it."""
        grammar = f"Text that follows this {self.syntax} grammar:\n{self.definition}"
        return _parameters({"type": "string", "description": "Any text." if self.syntax is None else grammar})

    def binding_parameters(self) -> dict[str, Any]:
        """Return the parameters that constrain a call."""
        return _parameters(
            {"type": "string"} if self.pattern is None else {"type": "string", "pattern": self.pattern}
        )


def read_format(form: Any, param: str) -> InputFormat:
    """Parse the ``format`` of a custom tool. Its grammar is in a nested object (Chat) or not (Responses).

    Raises:
        BadRequestError: it is neither a text nor a grammar.
        GrammarError: the grammar cannot be enforced.
    """
    match form:
        case None | {"type": "text"}:
            return InputFormat()
        case {"type": "grammar", "grammar": dict(grammar)}:
            return _read_grammar(grammar, f"{param}.grammar")
        case {"type": "grammar"}:
            return _read_grammar(form, param)
    raise BadRequestError(f"{param} must be {_FORMS}", code="invalid_value", param=param)


def _read_grammar(grammar: dict[str, Any], param: str) -> InputFormat:
    match grammar:
        case {"syntax": "lark" | "regex" as syntax, "definition": str(definition)}:
            pass
        case _:
            raise BadRequestError(f"{param} must be {_FORMS}", code="invalid_value", param=param)
    try:
        inner = pattern_of_lark(definition) if syntax == "lark" else _ANCHORS.sub("", definition)
    except GrammarError as error:
        error.param = f"{param}.definition"
        raise
    return InputFormat(syntax, definition, f"^(?:{inner})$")


def _parameters(text: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {INPUT: text},
        "required": [INPUT],
        "additionalProperties": False,
    }
