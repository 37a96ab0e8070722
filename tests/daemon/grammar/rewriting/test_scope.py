from __future__ import annotations

from typing import Any

from llmd.grammar.rewriting.scope import Scope

ROOT: dict[str, Any] = {
    "type": "object",
    "$defs": {"x": {"type": "string"}, "y": {"$ref": "#/$defs/x"}, "z": {"$ref": "#/$defs/z"}},
}
SCOPE = Scope(
    ROOT, "#/items", negate=lambda _: {}, define=lambda schema, _: schema, spend=lambda _amount: None
)


def test_references_are_followed_while_they_say_nothing_else() -> None:
    assert SCOPE.followed({"$ref": "#/$defs/y"}) == {"type": "string"}
    assert SCOPE.followed({"$ref": "#/$defs/y", "title": "x"}) == {"$ref": "#/$defs/y", "title": "x"}
    assert SCOPE.followed({"$ref": "#/$defs/z"}) == {"$ref": "#/$defs/z"}
    assert SCOPE.followed(True) is True


def test_the_document_is_referred_to_without_its_definitions() -> None:
    assert SCOPE.target("#") == {"type": "object"}


def test_a_refusal_names_the_place_and_what_to_do() -> None:
    error = SCOPE.refusal("not with x")
    assert error.message == "the JSON schema has not with x at #/items, which cannot be enforced"
    assert error.hint == "remove it from the schema and check it in the answer"
    assert SCOPE.refusal("x", "write y").hint == "write y"
    message = SCOPE.exclusion("multipleOf").message
    assert message == "the JSON schema needs the negation of multipleOf at #/items, which cannot be enforced"
