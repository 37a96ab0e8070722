from __future__ import annotations

import re

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.texts.text_sets import TextSets

TEXTS = ("", "a", "b", "ab", "ba", "abc", "bab", "aaaa", "x y", "é", "\n", "a\nb", "]", "\\", "-", "^", "[a]")


def taken(pattern: str | None) -> list[str]:
    return [] if pattern is None else [text for text in TEXTS if re.search(pattern.replace("$", r"\Z"), text)]


def test_sets_are_combined() -> None:
    sets = TextSets()
    a, b = sets.matching("a"), sets.matching("b$")
    assert taken(sets.pattern(sets.union(a, b))) == [
        text for text in TEXTS if "a" in text or text.endswith("b")
    ]
    assert taken(sets.pattern(sets.intersection(a, b))) == ["ab", "bab", "a\nb"]
    assert taken(sets.pattern(sets.complement(a))) == [text for text in TEXTS if "a" not in text]
    assert taken(sets.pattern(sets.lengths(1, 2))) == [text for text in TEXTS if 1 <= len(text) <= 2]
    assert taken(sets.pattern(sets.lengths(3, None))) == [text for text in TEXTS if len(text) >= 3]
    assert taken(sets.pattern(sets.literals(["a", "[a]", "z"]))) == ["a", "[a]"]
    assert taken(sets.pattern(sets.everything)) == list(TEXTS)
    assert sets.pattern(sets.nothing) is None


def test_a_set_that_no_text_is_in_is_empty() -> None:
    sets = TextSets()
    assert sets.is_empty(sets.intersection(sets.matching("^a"), sets.matching("^b")))
    assert not sets.is_empty(sets.intersection(sets.matching("^a"), sets.matching("b$")))
    assert sets.is_empty(sets.complement(sets.everything))
    assert sets.size >= 0


@pytest.mark.parametrize("first", ["^a", "b$", "^.{2}$", "^(ab|[^a])*$", "[é-\U0001f600]", "a.*b"])
def test_the_complement_of_a_complement_is_the_set(first: str) -> None:
    sets = TextSets()
    once = sets.pattern(sets.complement(sets.matching(first)))
    assert once is not None
    again = sets.matching(once)
    assert taken(sets.pattern(sets.complement(again))) == taken(sets.pattern(sets.matching(first)))
    assert sets.is_empty(sets.intersection(again, sets.matching(first)))


def test_sets_that_are_too_large_are_refused() -> None:
    sets = TextSets()
    with pytest.raises(GrammarError, match="too large to be enforced"):
        sets.lengths(0, 1000)
    with pytest.raises(GrammarError, match="too large to be enforced"):
        sets.pattern(sets.intersection(sets.lengths(300, 300), sets.matching("^(aa|bbb)*$")))
