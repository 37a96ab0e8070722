"""Both data sets pass their options on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.benchmark.data_set import RandomData, ShareGptData
from llmd.benchmark.random_prompts import RandomShape
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.serving.model import write_model


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return load_tokenizer(write_model(tmp_path / "model"))


def test_random_tokens_are_text_or_ids(tokenizer: Tokenizer) -> None:
    shape = RandomShape(9, 3)
    (as_text,) = RandomData(shape).samples(tokenizer, 1, 0)
    (as_ids,) = RandomData(shape, as_token_ids=True).samples(tokenizer, 1, 0)
    assert (type(as_text.prompt), type(as_ids.prompt)) == (str, tuple)
    assert as_text.prompt_len == as_ids.prompt_len == 9


def test_answers_of_a_file_may_have_one_length(tokenizer: Tokenizer, tmp_path: Path) -> None:
    talk = {"conversations": [{"value": "What is it?"}, {"value": "A test."}]}
    (tmp_path / "talks.json").write_text(json.dumps([talk]))
    (own,) = ShareGptData(tmp_path / "talks.json").samples(tokenizer, 1, 0)
    (given,) = ShareGptData(tmp_path / "talks.json", 20).samples(tokenizer, 1, 0)
    assert (own.output_len, given.output_len) == (7, 20)
