"""Custom tools of the Chat and the Responses API: to the model they are functions of one text, which a grammar may bind."""

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
"""A pattern is of the whole text in any case; some families take it without anchors."""
_FORMS = '{"type": "text"}, or a grammar whose syntax is lark or regex'


class InputFormat(Struct, frozen=True):
    """What the input of a tool is: any text, or one that a grammar describes, as ``pattern`` does."""

    syntax: Literal["lark", "regex"] | None = None
    definition: str = ""
    pattern: str | None = None

    def shown_parameters(self) -> dict[str, Any]:
        """The parameters that the model reads: it is told the grammar as it was sent."""
        told = f"Text that follows this {self.syntax} grammar:\n{self.definition}"
        return _parameters({"type": "string", "description": "Any text." if self.syntax is None else told})

    def binding_parameters(self) -> dict[str, Any]:
        """The parameters that bind a call."""
        return _parameters(
            {"type": "string"} if self.pattern is None else {"type": "string", "pattern": self.pattern}
        )


def read_format(form: Any, param: str) -> InputFormat:
    """The ``format`` of a custom tool, with its grammar inside of an object of its own (Chat) or without one (Responses).

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
