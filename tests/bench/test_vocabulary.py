"""The vocabulary of random models works with the daemon's tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.vocabulary import END, merges, tokens, write_tokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

SIZE = 4000


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    directory = tmp_path_factory.mktemp("vocabulary")
    write_tokenizer(SIZE, directory)
    return load_tokenizer(directory)


@pytest.mark.parametrize("size", [300, 4000, 32000, 200064])
def test_has_the_size_that_was_asked_for_and_no_token_twice(size: int) -> None:
    assert len(tokens(size)) == len(set(tokens(size))) == size


@pytest.mark.parametrize("size", [SIZE, 200064])
def test_each_merge_joins_tokens_that_stand_before_it(size: int) -> None:
    known = set(tokens(size)[:256])
    for left, right in merges(size):
        assert {left, right} <= known
        known.add(left + right)


def test_text_comes_back_and_letters_are_merged(tokenizer: Tokenizer) -> None:
    text = "Words, naïve and 日本"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text.encode())
    assert len(tokenizer.encode("aab")) == 1


def test_its_last_token_ends_a_turn(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == SIZE
    assert (tokenizer.token_id(END), tokenizer.eos_ids) == (SIZE - 1, (SIZE - 1,))
    assert tokenizer.is_special(SIZE - 1)


def test_is_written_below_a_path(tmp_path: Path) -> None:
    write_tokenizer(300, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
