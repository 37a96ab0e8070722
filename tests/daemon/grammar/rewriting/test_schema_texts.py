from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable
from tests.structured.conformity import disagreements

NAMES = ("", "a", "b", "ab", "ba", "abc", "2020-02-29", "2021-02-29", "größe")


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"const": "a"},
        {"enum": ["a", 1, "ab"]},
        {"enum": ["a", "b"], "const": "b"},
        {"minLength": 1, "maxLength": 2},
        {"pattern": "^a", "minLength": 2},
        {"format": "date"},
        {"format": "date", "not": {"pattern": "^2020"}},
        {"allOf": [{"pattern": "a"}, {"pattern": "b"}]},
        {"anyOf": [{"const": "a"}, {"minLength": 3}]},
        {"oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
        {"not": {"enum": ["a", "b"]}},
        {"if": {"pattern": "^a"}, "then": {"maxLength": 1}, "else": {"const": "b"}},
        {"$ref": "#/$defs/x"},
        {"type": ["string", "null"], "minimum": 5, "required": ["x"]},
        {"type": "integer"},
    ],
)
def test_names_are_the_texts_that_a_schema_allows(schema: Any) -> None:
    document = {"propertyNames": schema, "$defs": {"x": {"maxLength": 1}}}
    assert disagreements(document, [{}, *({name: 1} for name in NAMES)]) == []


@pytest.mark.parametrize("name", ["not", "propertyNames"])
def test_texts_of_a_pattern_can_be_turned_into_their_opposite(name: str) -> None:
    schema = {"type": "string", "not": {"pattern": "^a|b$"}}
    if name == "not":
        assert disagreements(schema, NAMES) == []
    else:
        assert disagreements({name: schema}, [{text: 1} for text in NAMES]) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "#/propertyNames"}, "more than 16 references in a row at #"),
        ({"format": "email"}, "format email combined with other string keywords at #"),
        ({"pattern": "(?=a)b"}, "has look-around"),
        ({"maxLength": 1000}, "too large to be enforced"),
    ],
)
def test_texts_that_cannot_be_combined_are_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        enforceable({"propertyNames": schema})
