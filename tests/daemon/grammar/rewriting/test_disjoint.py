from __future__ import annotations

from typing import Any

import pytest

from llmd.grammar.rewriting.disjoint import are_disjoint


def tagged(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"tag": value}, "required": ["tag"], **more}


DEFS = {
    "$defs": {
        "base": {"type": "object", "properties": {"x": {}}},
        "a": tagged({"const": "a"}),
        "b": tagged({"enum": ["b", "c"]}),
    }
}


@pytest.mark.parametrize(
    ("alternatives", "disjoint"),
    [
        ([{"type": "string"}, {"type": "null"}, {"type": ["integer", "object"]}], True),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"type": "string"}, {}], False),
        ([{"const": 1}, {"const": 2}, {"enum": [3, 4]}], True),
        ([{"const": 1}, {"const": 1.0}], False),
        ([{"const": 1}, {"const": True}], True),
        ([{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}], False),
        ([{"const": "a"}, {"type": "integer"}], True),
        ([{"const": "a"}, {"type": "string"}], False),
        ([tagged({"const": "a"}), tagged({"const": "b"})], True),
        ([tagged({"const": "a"}), tagged({"enum": ["a", "b"]})], False),
        ([tagged(tagged({"const": "a"})), tagged(tagged({"const": "b"}))], True),
        ([tagged({"const": "a"}), tagged({"const": "b"}, required=[])], True),
        ([tagged({"const": "a"}, type=["object", "null"]), tagged({"const": "b"}, type=["object", "null"])], False),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], True),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], False),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/nothing"}], False),
        ([{"const": n} for n in range(201)], False),
        ([True, {"type": "string"}], False),
        ([{"allOf": [{"$ref": "#/$defs/base"}, tagged({"const": n})]} for n in "ab"], True),
        ([{"allOf": [{"$ref": "#/$defs/base"}, tagged({"const": n})]} for n in "aa"], False),
        ([{"$ref": "#/$defs/base", "properties": {"tag": {"const": n}}, "required": ["tag"]} for n in "ab"], True),
        ([{"allOf": [{"type": "string"}, {"minLength": 1}]}, {"allOf": [{"type": "null"}]}], True),
        ([False, {"type": "string"}], True),
        ([{"const": [1]}, {"const": [1.0]}], False),
        ([{"anyOf": [{"const": 1}, {"type": "null"}]}, {"type": "string"}], True),
        ([{"anyOf": [{"const": 1}, {"type": "null"}]}, {"const": 1}], False),
        ([{"type": "string"}, {"oneOf": [{"const": 1}, {"type": "null"}]}], True),
        ([{"type": "integer", "maximum": 3}, {"type": "number", "minimum": 4}], True),
        ([{"type": "integer", "exclusiveMaximum": 4}, {"type": "number", "minimum": 4}], False),
        ([{"type": "integer", "maximum": 3}, {"const": 4}], True),
        ([{"type": "integer", "maximum": 3}, {"enum": [2, 4]}], False),
        ([{"maximum": 3}, {"minimum": 4}], False),
        ([tagged({"const": "a"}), {"type": "object", "additionalProperties": False}], True),
        ([tagged({"const": "a"}), {"type": "object", "additionalProperties": False, "patternProperties": {"t": {}}}], False),
        ([tagged({"const": "a"}), {"type": "object", "properties": {"tag": False}}], True),
        ([tagged({"const": "a"}), {"properties": {"tag": False}}], True),
    ],
)  # fmt: skip
def test_sees_alternatives_that_exclude_each_other(alternatives: list[Any], disjoint: bool) -> None:  # noqa: FBT001
    assert are_disjoint(alternatives, DEFS) is disjoint


def test_a_reference_to_itself_ends() -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert not are_disjoint([{"$ref": "#/$defs/a"}, {"type": "null"}], root)
