"""The grammar of sentences."""

from __future__ import annotations

import re
from random import Random

import pytest

from guide.grammar import normal, parse, tidy

WORDS = {"stop": "(stop|end)", "it": "(the daemon|<stop> it)"}


def sentences(text: str) -> set[str]:
    pattern = parse(text, WORDS)
    return {tidy(pattern.sample(Random(seed), lambda name: f"{name}7")) for seed in range(200)}


def test_choices_nest_and_an_empty_branch_leaves_words_out() -> None:
    assert sentences("(please (do|try)|) go") == {"please do go", "please try go", "go"}


def test_lists_of_words_may_name_other_lists() -> None:
    assert sentences("<it>") == {"the daemon", "stop it", "end it"}


def test_slots_are_filled_by_the_caller() -> None:
    assert sentences("on port [port]") == {"on port port7"}


def test_an_unknown_list_of_words_is_an_error() -> None:
    with pytest.raises(KeyError):
        parse("<nothing>", WORDS)


def test_an_unbalanced_parenthesis_is_an_error() -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        parse("a) b", WORDS)


def test_the_expression_matches_every_sentence_and_nothing_else() -> None:
    text = "(how|what) do i <stop> [model], (please|)"
    expression = re.compile(parse(text, WORDS).regex())
    assert all(expression.fullmatch(normal(sentence)) for sentence in sentences(text))
    assert not expression.fullmatch("why do i stop model7")
    assert not expression.fullmatch("well how do i stop model7")


def test_a_hole_in_a_frame_matches_what_is_put_there() -> None:
    expression = re.compile(parse("how to @ now", WORDS).regex("(?:stop|go on)"))
    assert expression.fullmatch("how to go on now")
    assert not expression.fullmatch("how to wait now")


def test_normal_forms_forget_capitals_and_marks() -> None:
    assert normal("What's  the PORT, please?") == "whats the port please"
