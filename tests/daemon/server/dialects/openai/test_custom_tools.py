from __future__ import annotations

import re
from typing import Any

import pytest

from llmd.api.errors import GrammarError, RequestError
from llmd.server.dialects.openai.custom_tools import read_format

LARK = 'start: "a"+'


def test_any_text_will_do_where_no_format_is_given() -> None:
    for form in (None, {"type": "text"}):
        read = read_format(form, "format")
        assert read.shown_parameters()["properties"] == {
            "input": {"type": "string", "description": "Any text."}
        }
        assert read.binding_parameters()["properties"] == {"input": {"type": "string"}}


@pytest.mark.parametrize("nested", [True, False])
def test_grammars_come_in_the_form_of_either_api_are_shown_and_bind(nested: bool) -> None:  # noqa: FBT001
    grammar = {"syntax": "lark", "definition": LARK}
    read = read_format({"type": "grammar", **({"grammar": grammar} if nested else grammar)}, "format")
    shown, binding = read.shown_parameters(), read.binding_parameters()
    assert shown["properties"]["input"]["description"].endswith(f"this lark grammar:\n{LARK}")
    assert "pattern" not in shown["properties"]["input"]
    pattern = binding["properties"]["input"]["pattern"]
    assert [re.search(pattern, text) is not None for text in ("aaa", "", "ab")] == [True, False, False]
    for parameters in (shown, binding):
        assert (parameters["required"], parameters["additionalProperties"]) == (["input"], False)


@pytest.mark.parametrize(
    ("definition", "pattern"),
    [("a|b", "^(?:a|b)$"), ("^a|b$", "^(?:a|b)$"), (r"\^a\$", r"^(?:\^a\$)$")],
)
def test_a_regular_expression_binds_the_whole_text(definition: str, pattern: str) -> None:
    read = read_format({"type": "grammar", "syntax": "regex", "definition": definition}, "format")
    assert read.pattern == pattern


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ("text", "format"),
        ({"type": "json"}, "format"),
        ({"type": "grammar"}, "format"),
        ({"type": "grammar", "grammar": {"syntax": "gbnf", "definition": "x"}}, "format.grammar"),
        ({"type": "grammar", "syntax": "lark", "definition": 3}, "format"),
    ],
)
def test_what_is_neither_text_nor_grammar_is_refused(form: Any, param: str) -> None:
    with pytest.raises(RequestError, match="lark or regex") as refused:
        read_format(form, "format")
    assert refused.value.param == param


def test_a_grammar_that_cannot_be_enforced_is_refused_with_its_place() -> None:
    with pytest.raises(GrammarError, match="no rule b") as refused:
        read_format({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: b"}}, "format")
    assert refused.value.param == "format.grammar.definition"
