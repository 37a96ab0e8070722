"""Constrain answers to a request's tools: to a call if one is required, else each call to its schema."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.api.parsing import CallFormat, Tool
from llmd.chat.grammars.answer_grammar import ModelGrammars
from llmd.chat.tools.call_grammar import lark_of_calls
from llmd.chat.tools.choice import ToolChoice

logger = logging.getLogger(__name__)

_ANY_ARGUMENTS = {"type": "object"}


class ToolBinding:
    """Builds the grammars of one model's tool calls. All methods may block: call them in a thread."""

    def __init__(self, form: CallFormat, grammars: ModelGrammars) -> None:
        self._form = form
        self._grammars = grammars

    def bind(
        self, tools: Sequence[Tool], choice: ToolChoice, answer: Grammar | None, reasoning_begin: str | None
    ) -> Grammar | None:
        """Return the grammar of an answer that may call ``tools``; ``answer`` constrains one without calls.

        If calls are optional, a schema that cannot be enforced becomes "any object", and if the tools are too
        many for a grammar, calls are not constrained at all. This is no worse than a server that never
        constrains calls.

        Raises:
            GrammarError: the grammar cannot be enforced, and a call is required or ``answer`` is given.
        """
        is_required = choice.mode == "required"
        marks = [*self._form.marks, *([reasoning_begin] if reasoning_begin else [])]
        bindable = [self._bindable(tool, is_required=is_required) for tool in tools]
        try:
            grammar = lark_of_calls(
                self._form.grammar(bindable),
                choice,
                self._grammars.control_ids(marks),
                answer=answer,
                reasoning_begin=reasoning_begin,
                text_begin=self._form.text_begin,
            )
            self._grammars.check(grammar)
        except GrammarError as error:
            if is_required or answer is not None:
                error.param = error.param or "tools"
                raise
            logger.warning("calls_not_bound", extra={"tools": len(tools), "reason": error.message})
            return None
        return grammar

    def _bindable(self, tool: Tool, *, is_required: bool) -> Tool:
        schema = closed(dict(tool.parameters))
        try:
            self._grammars.check(Grammar("json_schema", json.dumps(schema)))
        except GrammarError as error:
            if is_required:
                raise GrammarError(
                    f"the parameters of {tool.name} cannot be enforced: {error.message}",
                    param="tools",
                    hint=error.hint,
                ) from error
            logger.warning("arguments_not_bound", extra={"tool": tool.name, "reason": error.message})
            schema = _ANY_ARGUMENTS
        return Tool(tool.name, schema)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Complete a schema of arguments: by default an object without further properties than those it names."""
    if schema.get("type", "object") == "object" and "properties" in schema:
        return {"type": "object", "additionalProperties": False, **schema}
    return {"type": "object", **schema}
