from __future__ import annotations

import re

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.lark_pattern import pattern_of_lark
from llmd.grammar.lark_syntax import Choice, Pattern, Reference, Repeat, Sequence, escaped, read_lark


def test_rules_are_read_as_they_are_written() -> None:
    grammar = read_lark(
        '// a comment\n?start: a b* -> both\n     | [A] # or nothing\n!a.2: ("x")~2..3\nb: /y/i{2,}\nA: "0".."9"\n'
    )
    assert grammar.rules == {
        "start": Choice(
            (Sequence((Reference("a"), Repeat(Reference("b"), 0, None))), Repeat(Reference("A"), 0, 1))
        ),
        "a": Repeat(Pattern("x"), 2, 3),
        "b": Repeat(Pattern("(?i:y)"), 2, None),
        "A": Pattern("[0-9]"),
    }


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (r'"a\"\\\n\u00e9\x41"', 'a"\\\néA'),
        ('"Select"i', "sELECT"),
        (r"/a\/b[^\]]+/", "a/b\n"),
        ("/a.b/s", "a\nb"),
        ('"a".."c"~3', "abc"),
        ('"."+', "..."),
    ],
)
def test_texts_and_regular_expressions_mean_what_they_say(expression: str, text: str) -> None:
    assert re.fullmatch(pattern_of_lark(f"start: {expression}"), text)


@pytest.mark.parametrize(
    ("terminal", "texts"),
    [
        ("SIGNED_NUMBER", ["1", "-1.5", "+.5e-3"]),
        ("ESCAPED_STRING", ['"a\\"b"']),
        ("CNAME", ["_a1"]),
        ("WS", [" \t\r\n"]),
        ("NEWLINE", ["\r\n\n"]),
    ],
)
def test_common_terminals_may_be_imported(terminal: str, texts: list[str]) -> None:
    pattern = pattern_of_lark(f"start: X\n%import common.{terminal} -> X")
    assert all(re.fullmatch(pattern, text) for text in texts)


def test_nothing_is_skipped_inside_of_a_terminal() -> None:
    pattern = pattern_of_lark('start: A A\nA: "x" "y"\n%ignore " "')
    assert re.fullmatch(pattern, " xy  xy ")
    assert not re.fullmatch(pattern, "x yxy")


def test_a_text_is_escaped_on_one_line() -> None:
    text = 'a.b\n\r\t(c)[d]{2}|^$#&~-/\\"é '
    assert re.fullmatch(escaped(text), text)
    assert "\n" not in escaped(text)


@pytest.mark.parametrize(
    "grammar",
    [
        "start: a[stop='x']",
        'start: "a" & "b"',
        'start: ~"a"',
        "start: <|end|>",
        "start: %json {}",
        "start: @other",
        '"a"',
        'start: ("a"',
        'start: "a',
        "start: /a",
        'start: "\\q"',
        "start: /a/y",
        "%import common.NOTHING",
        "%import mine.LF",
        "%import common",
        "%declare A",
        'start: ")"\n)',
        'start: "ab".."c"',
    ],
)
def test_what_no_regular_expression_says_is_refused(grammar: str) -> None:
    with pytest.raises(GrammarError, match="cannot be enforced"):
        read_lark(grammar)
