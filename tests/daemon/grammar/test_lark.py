from __future__ import annotations

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.json_schema import schema_grammar
from llmd.grammar.lark import (
    after_reasoning,
    any_text,
    behind_text,
    control_token,
    embedded,
    json_value,
    literal,
)
from tests.daemon.grammar.conftest import CLOSE, OPEN, Follow

OBJECT = schema_grammar({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


@pytest.mark.parametrize(
    ("grammar", "taken", "refused"),
    [
        (Grammar("regex", r"\d{2}/\w+"), ["12/ab"], ["1/ab", "12/", "12/a-", "٣٤/ab"]),
        (Grammar("regex", "(?i)yes|no"), ["yes", "YES", "nO"], ["", "yesno"]),
        (Grammar("choice", '["yes", "q\\"\\\\n", "é😀"]'), ["yes", 'q"\\n', "é😀"], ["no", "é"]),
        (Grammar("json_object"), ["{}", '{"a": [1, null]}'], ["[]", "1", '{"a": }']),
        (OBJECT, ['{"a":1}', '{"a": 1, "b": "x"}', '{\n  "a": 1\n}'], ["{}", '{"a": "1"}', '{"a":   1}']),
        (Grammar("json_schema", "true"), ["1", '"x"', "[]"], ["", "x"]),
        (Grammar("lark", 'start: word+\nword: "ab" | /[0-9]/'), ["ab1", "7"], ["", "a", "x"]),
        (Grammar("gbnf", 'root ::= "a" [0-9]+'), ["a1", "a123"], ["a", "1"]),
    ],
    ids=lambda value: value.kind if isinstance(value, Grammar) else "",
)
def test_every_kind_takes_what_it_describes_and_nothing_else(
    follow: Follow, grammar: Grammar, taken: list[str], refused: list[str]
) -> None:
    assert [text for text in taken if not follow(grammar, text)] == []
    assert [text for text in refused if follow(grammar, text)] == []


def test_a_property_has_one_name_only(follow: Follow) -> None:
    """To the grammar an escaped name would be a different property, to the client the same."""
    assert not follow(schema_grammar({"properties": {"a": {"type": "integer"}}}), '{"\\u0061": "x"}')


def test_white_space_is_bounded(follow: Follow) -> None:
    assert follow(OBJECT, '{\n        "a": 1\n}')
    assert not follow(OBJECT, "{" + "\n" * 2)
    assert not follow(OBJECT, "{" + " " * 2)


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar("regex", "(a"), "unclosed group"),
        (Grammar("regex", "(?=a)b"), "look-around"),
        (Grammar("regex", r"(a)\1"), "backreferences"),
        (Grammar("choice", "[]"), "one or more strings"),
        (Grammar("choice", '["a", 1]'), "one or more strings"),
        (Grammar("choice", "yes"), "not JSON"),
        (Grammar("json_schema", "{"), "not JSON"),
        (Grammar("json_schema", "false"), "allows no value"),
        (Grammar("lark", "start: nothing"), "nothing"),
        (Grammar("lark", 'begin: "a"'), "start"),
        (Grammar("regex", "[^\\s\\S]"), "no text matches"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_reason(
    follow: Follow, grammar: Grammar, reason: str
) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        follow(grammar, "")
    assert "\n" not in caught.value.message


INNER = (
    Grammar("json_schema", '{"const": "x"}'),
    Grammar("regex", '"x"'),
    Grammar("choice", '["\\"x\\""]'),
    Grammar("lark", 'start: "\\"" inner "\\""\ninner: "x"'),
    Grammar("gbnf", 'root ::= "\\"x\\""'),
)


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner.kind)
def test_a_grammar_of_any_kind_is_part_of_another(follow: Follow, inner: Grammar) -> None:
    rules = [f"start: {control_token(OPEN)} inner {literal('/end')}", f"inner: {embedded(inner)}", ""]
    outer = Grammar("lark", "\n".join(rules))
    assert follow(outer, [OPEN, *b'"x"/end'])
    assert not follow(outer, [OPEN, *b'"y"/end'])
    assert not follow(outer, b'<think>"x"/end')


def test_a_call_is_written_with_its_schema(follow: Follow) -> None:
    call = f"start: {literal('call ')} {json_value({'type': 'integer'})} {control_token(CLOSE)}"
    assert follow(Grammar("lark", call), [*b"call 12", CLOSE])
    assert not follow(Grammar("lark", call), [*b"call x", CLOSE])


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: inner.kind)
def test_the_grammar_begins_where_the_reasoning_ends(follow: Follow, inner: Grammar) -> None:
    by_token = after_reasoning(inner, begin=control_token(OPEN), end=CLOSE)
    assert follow(by_token, [OPEN, *b"let me {see", CLOSE, *b'\n\n"x"'])
    assert follow(by_token, [OPEN, CLOSE, *b'"x"'])
    assert follow(by_token, b'"x"')
    assert not follow(by_token, [OPEN, *b'"x"'])
    by_text = after_reasoning(inner, begin=None, end="</think>")
    assert follow(by_text, 'let <b>me</b> {see</think>\n\n"x"')
    assert not follow(by_text, 'let me see</think>\n\n"y"')
    assert not follow(by_text, 'let me see "x"')


def test_white_space_after_reasoning_is_short_before_a_constrained_answer(follow: Follow) -> None:
    grammar = after_reasoning(INNER[0], begin=None, end=CLOSE)
    assert follow(grammar, [CLOSE, *b'\n\n      "x"'])
    assert not follow(grammar, [CLOSE, *b" " * 9])
    assert follow(after_reasoning(any_text(), begin=None, end=CLOSE, budget=5), [CLOSE, *b" " * 40])


def test_text_may_be_demanded_between_reasoning_and_answer(follow: Follow) -> None:
    begin, after = f"{control_token(OPEN)} {literal('analysis')}", literal("next ")
    grammar = after_reasoning(
        behind_text(literal("final "), INNER[0]), begin=begin, end=CLOSE, after=after, budget=5
    )
    assert follow(grammar, [OPEN, *b"analysis", *b"hm", CLOSE, *b'next final "x"'])
    assert follow(grammar, 'final "x"')
    assert not follow(grammar, [OPEN, *b"analysis", *b"hm", CLOSE, *b'final "x"'])
    assert not follow(grammar, [OPEN, *b"hm", CLOSE, *b'next final "x"'])
    assert not follow(grammar, '"x"')


@pytest.mark.parametrize("budget", [0, 3])
def test_reasoning_ends_with_its_budget(follow: Follow, budget: int) -> None:
    grammar = after_reasoning(any_text(), begin=None, end=CLOSE, budget=budget)
    assert follow(grammar, [*b"abc"[:budget], CLOSE, *b"and so on"])
    assert not follow(grammar, [*b"abcd"[: budget + 1], CLOSE])
    assert follow(grammar, [CLOSE, *b"soon"])


def test_any_text_is_every_text(follow: Follow) -> None:
    assert follow(any_text(), "")
    assert follow(any_text(), "a\n{<think")
    assert not follow(any_text(), [*b"a", OPEN])
