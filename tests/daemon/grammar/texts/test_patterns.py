from __future__ import annotations

import pytest

from llmd.grammar.json_schema import schema_grammar
from llmd.grammar.texts.patterns import plain_pattern, with_plain_patterns
from tests.structured.conformity import allows, compiler


@pytest.mark.parametrize(
    ("pattern", "taken", "refused"),
    [
        (r"^\s$", [" ", "\u00a0", "\ufeff", "\u2003", "\u2029"], ["\x85", "a", ""]),
        (r"^\S$", ["\x85", "a", "😀", "\ufefe"], [" ", "\ufeff", "\u2028"]),
        (r"^[\s,]$", ["\ufeff", ","], ["a"]),
        (r"^[^\S]$", ["\ufeff"], ["a"]),
        ("^.$", ["a", "\x85", "😀"], ["\r", "\n", "\u2028", "\u2029", ""]),
        ("^[.]$", ["."], ["a"]),
        (r"^\.$", ["."], ["a"]),
        ("^[^]$", ["\n", "a"], [""]),
        (r"^\cJ$", ["\n"], ["J", "cJ"]),
        (r"^[a\]b.]$", ["]", "."], ["c"]),
    ],
)
def test_a_pattern_matches_what_it_does_in_javascript(
    pattern: str, taken: list[str], refused: list[str]
) -> None:
    matcher = compiler().compile(schema_grammar({"pattern": pattern}))
    assert [text for text in taken if not allows(matcher, text)] == []
    assert [text for text in refused if allows(matcher, text)] == []


def test_a_pattern_that_means_the_same_stays() -> None:
    for pattern in ("^[a-z]+$", r"\d{2}[^\]]", "a|b", r"\\s"):
        assert plain_pattern(pattern) == pattern
    schema = {"pattern": "^a", "patternProperties": {"^b": {}}}
    assert with_plain_patterns(schema) is schema


def test_patterns_of_names_are_rewritten_too() -> None:
    matcher = compiler().compile(schema_grammar({"patternProperties": {"^.$": False}}))
    assert allows(matcher, {"\r": 1})
    assert not allows(matcher, {"a": 1})
