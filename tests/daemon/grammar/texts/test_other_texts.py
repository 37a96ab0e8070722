from __future__ import annotations

import re

import pytest

from llmd.grammar.texts.other_texts import pattern_of_others

TEXTS = ("", "a", "b", "ab", "abc", "abcd", "abd", "ac", "é", "a\n", "[", "x" * 50)


@pytest.mark.parametrize(
    "known", [[], [""], ["a"], ["a", "abc"], ["", "ab", "ac", "é"], ["abc", "abd", "["], ["x" * 50]]
)
def test_all_texts_but_the_known_ones_match(known: list[str]) -> None:
    pattern = pattern_of_others(known).replace("$", r"\Z")
    assert [text for text in TEXTS if not re.search(pattern, text)] == [
        text for text in TEXTS if text in known
    ]


def test_the_pattern_grows_with_the_texts_alone() -> None:
    texts = [f"{number:08}" for number in range(500)]
    assert len(pattern_of_others(texts)) < 40 * sum(map(len, texts))
