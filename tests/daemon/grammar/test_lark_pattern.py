from __future__ import annotations

import json
import re

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.lark_pattern import MAX_PATTERN_LEN, pattern_of_lark
from tests.daemon.grammar.conftest import Follow

PATCHES = """
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: "*** Delete File: " name LF | "*** Update File: " name LF change*
name: /(.+)/
change: ("@@" | "@@ " /(.+)/) LF | ("+" | "-" | " ") /(.*)/ LF
%import common.LF
"""
PATCH = '*** Begin Patch\n*** Update File: a "b".py\n@@ def\n-\tx = "\\n"\n+x = 2é\n*** End Patch\n'
SUMS = """
start: sum
sum: sum "+" product | product
product: INT ("*" INT)* | "(" sum ")"
%import common (INT, WS_INLINE)
%ignore WS_INLINE
"""


def matches(grammar: str, text: str) -> bool:
    return re.fullmatch(pattern_of_lark(grammar), text) is not None


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (PATCH, True),
        (PATCH.removesuffix("\n"), True),
        (PATCH.replace("-\t", "\t"), False),
        (PATCH.replace("*** End Patch\n", ""), False),
        (PATCH + "more", False),
        ("*** Begin Patch\n*** End Patch\n", False),
    ],
)
def test_texts_of_a_grammar_match_alone_and_written_as_json(
    text: str,
    fits: bool,  # noqa: FBT001
    follow: Follow,
) -> None:
    assert matches(PATCHES, text) == fits
    schema = {"type": "string", "pattern": f"^(?:{pattern_of_lark(PATCHES)})$"}
    grammar = Grammar("json_schema", json.dumps(schema))
    assert follow(grammar, json.dumps(text, ensure_ascii=False)) == fits


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1", True),
        ("+".join(["1"] * 50), True),
        (" (1 + 2)+ 3 * 45", True),
        ("((1+1))+1", True),
        ("1+", False),
        ("(1", False),
        ("1)", False),
        ("1 2", False),
    ],
)
def test_lists_have_any_length_and_nesting_is_as_deep_as_fits(text: str, fits: bool) -> None:  # noqa: FBT001
    assert matches(SUMS, text) == fits


def test_what_is_nested_too_deeply_is_left_out_and_never_wrong() -> None:
    pattern = pattern_of_lark('start: "x" | "(" start ")"')
    depths = [depth for depth in range(20) if re.fullmatch(pattern, "(" * depth + "x" + ")" * depth)]
    assert depths == [*range(8)]
    wide = pattern_of_lark('start: one ("," one)*\none: "0123456789" | "[" start "|" start "]"')
    assert len(wide) <= 2 * MAX_PATTERN_LEN
    assert re.fullmatch(wide, "[0123456789|0123456789],0123456789")


def test_right_recursion_and_recursion_at_both_ends_are_lists() -> None:
    assert matches('start: "a" start | "b"', "a" * 30 + "b")
    both = 'start: start "+" start | "-" start | "x"'
    assert matches(both, "+".join(["-x", "x", "--x"] * 10))
    assert not matches(both, "x+")


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        ('start: "a" b', "has no rule b"),
        ('begin: "a"', "has no rule start"),
        ('start: "a" start', "no text matches"),
        ("start: " + "(" * 5000 + '"a"' + ")" * 5000, "too large"),
        ("start: " + '"abcdefghij" ' * 2000, "too large"),
        ("start: " + '"a" ' * 50_000, "too large"),
        ("start: r0 r0\n" + "".join(f"r{i}: r{i + 1} r{i + 1}\n" for i in range(40)) + "r40:\n", "too large"),
    ],
)
def test_what_matches_nothing_or_is_too_large_is_refused(grammar: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        pattern_of_lark(grammar)
