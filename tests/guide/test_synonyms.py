"""Synonyms change the words of a question and nothing that must stay."""

from __future__ import annotations

from random import Random

from guide.synonyms import reword


def test_words_are_replaced_by_words_of_the_same_list() -> None:
    texts = {reword("delete the folder", (), Random(seed)) for seed in range(300)}
    deeds, things = ("delete", "remove", "erase", "wipe"), ("folder", "directory", "dir")
    assert texts == {f"{deed} the {thing}" for deed in deeds for thing in things}


def test_the_longest_phrase_is_replaced_whole() -> None:
    texts = {reword("free my hard disk", (), Random(seed)) for seed in range(200)}
    assert texts == {f"free my {name}" for name in ("hard disk", "disk", "drive", "hard drive", "ssd")}


def test_names_of_commands_and_flags_and_parts_of_words_stay() -> None:
    text = "why would llmd launch take --default or a pc-like machinery"
    assert {reword(text, (), Random(seed)) for seed in range(100)} == {text}


def test_a_text_whose_value_holds_such_a_word_stays() -> None:
    text = "delete the model of mike-machine"
    assert {reword(text, ("the model",), Random(seed)) for seed in range(50)} == {text}
