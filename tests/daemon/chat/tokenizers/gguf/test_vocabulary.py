"""A GGUF file's vocabulary is read with its types, and rejected if it contradicts itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind, read_vocabulary
from tests.daemon.chat.tokenizers.gguf.metadata import FILE, bytes_and_merges, scored_pieces


def test_tokens_have_kinds_scores_and_roles() -> None:
    read = read_vocabulary(scored_pieces("▁a", bos_token_id=1, add_bos_token=False), FILE)
    assert read.tokens[-1] == "▁a"
    assert read.scores[-1] == -1.0
    assert read.of_kind(TokenKind.CONTROL) == {1: "<s>", 2: "</s>"}
    assert (read.ids, read.switches) == ({"bos": 1}, {"add_bos_token": False})


def test_where_kinds_and_scores_are_missing_all_tokens_are_alike() -> None:
    read = read_vocabulary({f"{PREFIX}tokens": ["a", "", "b"]}, FILE)
    assert read.kinds == [TokenKind.NORMAL] * 3
    assert read.scores == [0.0] * 3


def test_empty_tokens_are_none_and_may_be_several() -> None:
    read = read_vocabulary({f"{PREFIX}tokens": ["", "a", ""]}, FILE)
    assert read.of_kind(TokenKind.NORMAL) == {1: "a"}


def test_a_token_that_stands_twice_is_refused() -> None:
    with pytest.raises(TokenizerError, match="token 3 is 'a', which is also an earlier token"):
        read_vocabulary({f"{PREFIX}tokens": ["", "a", "b", "a", ""]}, FILE)


@pytest.mark.parametrize(
    ("changes", "mention"),
    [
        ({"tokens": None}, "no list tokenizer.ggml.tokens"),
        ({"tokens": []}, "no list tokenizer.ggml.tokens"),
        ({"tokens": np.zeros(3)}, "not a list of strings"),
        ({"model": 3}, "tokenizer.ggml.model is 3, not a string"),
        ({"token_type": np.ones(2, int)}, "2 entries for 258 tokens"),
        ({"token_type": np.ones(258)}, "not a list of integers"),
        ({"scores": "best"}, "not a list of numbers"),
        ({"scores": np.full(258, np.nan)}, "not a finite 32-bit float"),
        ({"scores": np.full(258, 1e300)}, "not a finite 32-bit float"),
        ({"precompiled_charsmap": np.ones(2, bool)}, "not a list of integers"),
        ({"scores": np.zeros(1)}, "1 entries for 258 tokens"),
        ({"merges": ["a b", 3]}, "not a list of strings"),
        ({"bos_token_id": 258}, "bos_token_id is 258, not an id below 258"),
        ({"eos_token_id": True}, "eos_token_id is True"),
        ({"add_bos_token": 1}, "add_bos_token is 1, not true or false"),
    ],
)
def test_values_that_contradict_each_other_are_refused_by_name(changes: dict[str, Any], mention: str) -> None:
    metadata = bytes_and_merges() | {PREFIX + key: value for key, value in changes.items()}
    with pytest.raises(TokenizerError) as error:
        read_vocabulary({key: value for key, value in metadata.items() if value is not None}, FILE)
    assert mention in error.value.message
    assert error.value.message.startswith(FILE)
