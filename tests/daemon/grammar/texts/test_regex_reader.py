from __future__ import annotations

import re

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.texts.expressions import Expressions
from llmd.grammar.texts.regex_reader import read_regex
from llmd.grammar.texts.text_sets import TextSets

TEXTS = ("", "a", "b", "ab", "ba", "aa", "aab", "abc", "a b", "a-b", "1", "12", "_", "\t", "\n", "é", "a]b", "A", "aaaa", ".", "^a", "a\nb")  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        "", "a", "^a", "b$", "^$", "^a$", "a|b", "^(a|b)+$", "^(?:ab)?$", "^(?<name>a)b", "^a*?b", "^a{2}$", "^a{1,2}$", "^a{2,}$",
        "^[ab]$", "^[^ab]$", "[a-c]$", "^[a\\-b]+$", "[\\]]", "^[]$", "^[^]$", r"^\d+$", r"\D", r"^\w$", r"\W", r"^\s$", r"^\S$", ".",
        r"\.", r"^\t$", r"\n", r"^\x61$", r"^\u0061$", r"a\-b", "^^a", "a$$", "^[.]$", "(^a|b$)", "^(a|ab)(c|)$", r"^[\d_]+$", "^(|a)$",
        r"\^a", "[-a]$", "[a-]$", "^a.b$",
    ],
)  # fmt: skip
def test_means_what_python_means_by_it(pattern: str) -> None:
    same = re.sub(r"\(\?<(?=\w)", "(?P<", pattern)
    same = same.replace("[]", "[^\\s\\S]").replace("[^]", "[\\s\\S]").replace("$", r"\Z")
    sets = TextSets()
    found = sets.matching(pattern)
    for text in TEXTS:
        is_one = not sets.is_empty(sets.intersection(found, sets.literals([text])))
        assert is_one is bool(re.search(same, text, re.ASCII)), text


@pytest.mark.parametrize(
    ("pattern", "text", "is_one"),
    [
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x85", False),
        ("^.$", "\u2028", False),
        ("^.$", "\x85", True),
        ("^.$", "😀", True),
        (r"^\u{1F600}$", "😀", True),
        (r"^\cI$", "\t", True),
        (r"^[\b]$", "\b", True),
        (r"^\0$", "\0", True),
        (r"^\v\f\r$", "\v\f\r", True),
        (r"^\/$", "/", True),
    ],
)
def test_means_what_javascript_means_by_it(pattern: str, text: str, is_one: bool) -> None:  # noqa: FBT001
    sets = TextSets()
    found = sets.intersection(sets.matching(pattern), sets.literals([text]))
    assert sets.is_empty(found) is not is_one


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"\bword", "a word boundary"),
        (r"(a)\1", "a backreference"),
        (r"(?<x>a)\k<x>", "a backreference"),
        (r"\p{L}", "a Unicode property"),
        ("(a", "an unclosed parenthesis"),
        ("a)", "an unopened parenthesis"),
        ("[a", "an unclosed class"),
        ("[b-a]", "an invalid range of characters"),
        (r"[\d-z]", "an invalid range of characters"),
        ("*a", r"\* with nothing to repeat"),
        ("a{301}", "more than 300 repetitions"),
        (r"\ud800", "a lone surrogate"),
        (r"\q", r"\\q"),
        ("a\\", r"has \\"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_pattern(pattern: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_regex(pattern, Expressions())
    assert pattern in caught.value.message
