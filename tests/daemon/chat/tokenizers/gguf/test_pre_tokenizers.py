"""Pre-tokenizers split text as the models that they are named after do."""

from __future__ import annotations

import pytest
import tokenizers
from tokenizers import pre_tokenizers

from llmd.chat.tokenizers.gguf.pre_tokenizers import CUTS

TEXT = "I'LL pay 12345 ½ HelloWorld über 你好かな don't_know?!\r\n\n  x"


def cut(name: str, text: str) -> list[str]:
    steps = [pre_tokenizers.Split(tokenizers.Regex(p), behavior="isolated") for p in CUTS[name].patterns]
    return [word for word, _ in pre_tokenizers.Sequence(steps).pre_tokenize_str(text)]


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_loses_nothing(name: str) -> None:
    assert "".join(cut(name, TEXT)) == TEXT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-2", ["I", "'", "LL", " pay", " 12345"]),
        ("llama-bpe", ["I", "'LL", " pay", " ", "123", "45"]),
        ("qwen2", ["I", "'LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("minicpm5", ["I", "'LL", " pay", " ", "123", "45"]),
        ("starcoder", ["I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("falcon", ["I", "'", "LL", " pay", " ", "123", "45"]),
        ("default", ["I", "'", "LL", " pay", " ", "123", "45"]),
        ("gpt-4o", ["I'LL", " pay", " ", "123", "45"]),
        ("tekken", ["I", "'LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("deepseek-llm", ["I", "'", "LL", " pay", " ", "12345"]),
        ("deepseek-coder", ["I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("deepseek-v3", ["I", "'LL", " pay", " ", "123", "45"]),
        ("seed-coder", ["I", "'LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("superbpe", ["I'LL pay ", "12", "345"]),
        ("bloom", ["I'LL", " pay", " 12345"]),
        ("viking", ["I'LL", " pay", " ", "1", "2", "3", "4", "5"]),
        ("gemma4", ["I'LL pay 12345"]),
    ],
)
def test_endings_words_and_numbers_are_parted_as_the_model_was_taught(name: str, words: list[str]) -> None:
    assert cut(name, "I'LL pay 12345") == words


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gpt-4o", "HelloWorld", ["Hello", "World"]),
        ("llama-bpe", "HelloWorld", ["HelloWorld"]),
        ("deepseek-v3", "ab你好かな", ["ab", "你好かな"]),
        ("qwen2", "ab你好かな", ["ab你好かな"]),
        ("qwen35", "e\u0301a", ["e\u0301a"]),
        ("laguna", "a?\n\nb", ["a", "?", "\n\n", "b"]),
        ("llama-bpe", "a?\n\nb", ["a", "?\n\n", "b"]),
        ("seed-coder", "a?\n\nb", ["a", "?", "\n\n", "b"]),
        ("deepseek-llm", " éÀ あա", [" éÀ", " ", "あ", "ա"]),
        ("gemma4", "a b\n\nc", ["a b", "\n\n", "c"]),
        ("falcon", "a$`+b", ["a", "$`+", "b"]),
        ("default", "a$`+b", ["a", "$", "`", "+", "b"]),
    ],
)
def test_scripts_signs_and_lines_are_parted_as_the_model_was_taught(
    name: str, text: str, words: list[str]
) -> None:
    assert cut(name, text) == words
