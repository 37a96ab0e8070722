from __future__ import annotations

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.texts import expressions
from llmd.grammar.texts.expressions import Expression, Expressions

A, B = ((97, 97),), ((98, 98),)


def matches(make: Expressions, expression: Expression, text: str) -> bool:
    for sign in text:
        expression = make.derivative(expression, ord(sign))
    return expression.is_nullable


def test_equal_expressions_are_one() -> None:
    make = Expressions()
    a, b = make.characters(A), make.characters(B)
    assert make.union([a, b]) is make.union([b, a, make.nothing, make.union([a, b])])
    assert make.sequence(make.sequence(a, b), a) is make.sequence(a, make.sequence(b, a))
    assert make.intersection([a, make.anything]) is a
    assert make.complement(make.complement(a)) is a
    assert make.repeat(make.repeat(a)) is make.repeat(a)
    assert make.repeat(make.empty) is make.empty


def test_what_cannot_match_is_nothing() -> None:
    make = Expressions()
    a = make.characters(A)
    assert make.sequence(a, make.nothing) is make.nothing
    assert make.intersection([a, make.nothing]) is make.nothing
    assert make.union([]) is make.nothing
    assert make.characters(()) is make.nothing
    assert make.union([a, make.anything]) is make.anything
    assert make.intersection([]) is make.anything


def test_texts_match_by_derivatives() -> None:
    make = Expressions()
    a, b = make.characters(A), make.characters(B)
    stars = make.sequence(make.repeat(a), make.repeat(b))
    for text, is_one in {"": True, "aab": True, "ba": False, "b": True}.items():
        assert matches(make, stars, text) is is_one
        assert matches(make, make.complement(stars), text) is not is_one
    both = make.intersection([stars, make.complement(make.literal("ab"))])
    assert [text for text in ("", "a", "ab", "aab", "ba") if matches(make, both, text)] == ["", "a", "aab"]
    few = make.optional([a, b, a])
    assert [text for text in ("", "a", "ab", "aba", "abaa", "b") if matches(make, few, text)] == [
        "",
        "a",
        "ab",
        "aba",
    ]


def test_the_sets_of_characters_are_those_of_all_parts() -> None:
    make = Expressions()
    expression = make.complement(make.sequence(make.characters(A), make.repeat(make.characters(B))))
    assert sorted(make.ranges(expression)) == [A, B]


def test_more_expressions_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_EXPRESSIONS", 5)
    make = Expressions()
    assert make.count == 3
    with pytest.raises(GrammarError, match="too large to be enforced"):
        make.literal("abcdefgh")
