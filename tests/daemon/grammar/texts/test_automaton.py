from __future__ import annotations

import re

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.texts import automaton
from llmd.grammar.texts.automaton import Automaton, character_class, pattern_of

A, B = ((97, 97),), ((98, 98),)


@pytest.mark.parametrize(
    ("machine", "texts"),
    [
        (Automaton([{}], {0}), [""]),
        (Automaton([{1: A}, {}], {1}), ["a"]),
        (Automaton([{1: A}, {0: B}], {0}), ["", "ab", "abab"]),
        (Automaton([{1: A, 2: B}, {1: A}, {2: B}], {0, 1, 2}), ["", "a", "aa", "b", "bb"]),
        (Automaton([{1: A, 2: B}, {}, {}], {1, 2}), ["a", "b"]),
        (Automaton([{0: ((97, 98),)}], {0}), ["", "a", "b", "ab", "aa", "abab", "bb", "ba"]),
        (Automaton([{1: A}, {2: B}, {}], {1}), ["a"]),
    ],
)
def test_the_pattern_has_the_texts_of_the_automaton(machine: Automaton, texts: list[str]) -> None:
    pattern = pattern_of(machine)
    assert pattern is not None
    every = ["", "a", "b", "aa", "ab", "ba", "bb", "abab", "c"]
    assert sorted(text for text in every if re.search(pattern, text)) == sorted(texts)


def test_an_automaton_that_accepts_nothing_has_no_pattern() -> None:
    assert pattern_of(Automaton([{1: A}, {}], set())) is None


def test_equal_states_are_one() -> None:
    two = Automaton([{1: A, 2: B}, {3: A}, {3: A}, {}], {3})
    assert pattern_of(two) == "^(?:[a-b]a)$"


def test_a_pattern_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "MAX_PATTERN_LEN", 4)
    with pytest.raises(GrammarError, match="too large to be enforced"):
        pattern_of(Automaton([{1: A}, {2: B}, {3: A}, {4: B}, {5: A}, {}], {5}))


@pytest.mark.parametrize(
    ("signs", "is_inverted", "written"),
    [
        ("a", False, "a"),
        ("-", False, r"\-"),
        ("ab", False, "[a-b]"),
        ("]^\\", False, r"[\\-\^]"),
        ("a", True, "[^a]"),
        ("", True, r"[\s\S]"),
        ("\n", False, r"\x0a"),
    ],
)
def test_classes_are_written_so_that_every_dialect_reads_them(
    signs: str,
    is_inverted: bool,  # noqa: FBT001
    written: str,
) -> None:
    assert character_class(*signs, is_inverted=is_inverted) == written
