from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.rewriting.rewriter import rewritten
from tests.structured.conformity import disagreements


def test_what_needs_no_rule_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"not": {"type": "string"}, "uniqueItems": {"$ref": "#/$defs/x"}},
        "const": {"if": 1, "then": 2},
        "examples": [{"format": "regex"}],
        "$defs": {"x": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
    }
    assert rewritten(schema) == schema
    assert rewritten(True) is True


def test_rules_apply_to_what_rules_have_made() -> None:
    schema: dict[str, Any] = {
        "if": {"not": {"contains": {"oneOf": [{"minimum": 1}, {"maximum": 2}]}}},
        "then": {"unevaluatedProperties": False, "dependentRequired": {"a": ["b"]}},
        "else": {"not": {"prefixItems": [{"not": {"type": "string"}}]}},
    }
    assert disagreements(schema) == []


def test_refusals_below_a_rule_name_the_place_of_the_rule() -> None:
    schema = {"properties": {"a": {"if": {"properties": {"b": {"multipleOf": 2}}}, "then": False}}}
    with pytest.raises(GrammarError, match="needs the negation of multipleOf at #/properties/a,"):
        rewritten(schema)


@pytest.mark.parametrize(
    "part",
    [
        {"contains": {"contains": {"contains": {"contains": {"const": 1}}}}},
        {"contains": {"format": "date"}, "minContains": 2},
    ],
)
def test_what_grows_beyond_all_bounds_is_refused(part: dict[str, Any]) -> None:
    schema: dict[str, Any] = part
    for number in range(8):
        schema = {"oneOf": [{"properties": {"a": schema}}, {"items": schema, "minItems": number}]}
    with pytest.raises(GrammarError, match="becomes too large at #"):
        rewritten(schema)
