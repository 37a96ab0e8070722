from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.api.parsing import Tool
from llmd.builtin.parsers.hermes import load
from llmd.chat.grammars.answer_grammar import ModelGrammars
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.model_text import ModelText
from llmd.chat.tools.binding import ToolBinding, closed
from llmd.chat.tools.choice import ToolChoice

NOW = Tool("now", {"type": "object", "properties": {"exact": {"type": "boolean"}}})
ODD = Tool("odd", {"type": "object", "properties": {"x": {"not": {"multipleOf": 2}}}})
AUTO, REQUIRED = ToolChoice(), ToolChoice("required")


@pytest.fixture(scope="module")
def binding(text: ModelText) -> Iterator[ToolBinding]:
    with GrammarChecker(time_limit_s=20) as checker:
        yield ToolBinding(load(), ModelGrammars(text.tokenizer, text.stop_ids, checker))


@pytest.mark.parametrize(
    ("schema", "meant"),
    [
        ({"properties": {}}, {"type": "object", "additionalProperties": False, "properties": {}}),
        ({"type": "object", "properties": {}, "additionalProperties": True}, None),
        ({"type": "object"}, None),
        ({}, {"type": "object"}),
        ({"anyOf": [{"required": ["a"]}]}, {"type": "object", "anyOf": [{"required": ["a"]}]}),
    ],
)
def test_arguments_are_an_object_of_what_is_named(
    schema: dict[str, Any], meant: dict[str, Any] | None
) -> None:
    assert closed(schema) == (schema if meant is None else meant)


@pytest.mark.parametrize("choice", [AUTO, REQUIRED])
def test_calls_are_bound_to_the_schemas_of_their_tools(binding: ToolBinding, choice: ToolChoice) -> None:
    grammar = binding.bind([NOW], choice, None, None)
    assert grammar is not None
    assert '"exact"' in grammar.text
    assert '"additionalProperties": false' in grammar.text


def test_schema_that_cannot_be_enforced_is_refused_where_a_call_is_required(binding: ToolBinding) -> None:
    with pytest.raises(GrammarError, match="parameters of odd cannot be enforced") as refused:
        binding.bind([NOW, ODD], REQUIRED, None, None)
    assert refused.value.param == "tools"


def test_schema_that_cannot_be_enforced_binds_to_an_object_else(
    binding: ToolBinding, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        grammar = binding.bind([NOW, ODD], AUTO, None, None)
    assert grammar is not None
    assert '"exact"' in grammar.text
    assert '"not"' not in grammar.text
    assert [record.message for record in caplog.records] == ["arguments_not_bound"]


def test_tools_that_are_too_many_for_a_grammar_bind_to_nothing_unless_a_call_is_required(
    binding: ToolBinding, caplog: pytest.LogCaptureFixture
) -> None:
    many = [Tool(f"{'t' * 900}{place}", {"type": "object"}) for place in range(400)]
    with caplog.at_level(logging.WARNING):
        assert binding.bind(many, AUTO, None, None) is None
    assert [record.message for record in caplog.records] == ["calls_not_bound"]
    for choice, answer in ((REQUIRED, None), (AUTO, Grammar("choice", '["a"]'))):
        with pytest.raises(GrammarError) as refused:
            binding.bind(many, choice, answer, None)
        assert refused.value.param == "tools"
