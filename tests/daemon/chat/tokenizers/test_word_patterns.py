"""Patterns split words, numbers and symbols as in the training of the models that they are named after."""

from __future__ import annotations

import pytest
import tokenizers
from tokenizers import pre_tokenizers

from llmd.chat.tokenizers.word_patterns import DIGIT, GPT2, GPT4O, LLAMA3, QWEN2, TEKKEN, cl100k

TEXT = "I'LL pay 12345!?\n\n  HelloWorld"


def words(pattern: str, text: str) -> list[str]:
    split = pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="isolated")
    return [word for word, _ in split.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (GPT2, ["I", "'", "LL", " pay", " 12345", "!?", "\n\n ", " HelloWorld"]),
        (LLAMA3, ["I", "'LL", " pay", " ", "123", "45", "!?\n\n", " ", " HelloWorld"]),
        (QWEN2, ["I", "'LL", " pay", " ", *"12345", "!?\n\n", " ", " HelloWorld"]),
        (GPT4O, ["I'LL", " pay", " ", "123", "45", "!?\n\n", " ", " Hello", "World"]),
        (TEKKEN, ["I", "'LL", " pay", " ", *"12345", "!?\n\n", " ", " Hello", "World"]),
    ],
)
def test_text_is_cut_as_the_model_was_taught(pattern: str, expected: list[str]) -> None:
    assert words(pattern, TEXT) == expected


def test_what_counts_as_a_letter_can_be_said() -> None:
    assert words(cl100k(DIGIT), "e\u0301a") == ["e", "\u0301a"]
    assert words(cl100k(DIGIT, letters=r"\p{L}\p{M}"), "e\u0301a") == ["e\u0301a"]
