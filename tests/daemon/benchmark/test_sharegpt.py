"""Conversations in a file become samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.benchmark.sharegpt import sharegpt_samples
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.serving.model import write_model

Talk = tuple[str, ...]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer with one token per byte."""
    return load_tokenizer(write_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talks.json"


def write(file: Path, *talks: Talk) -> None:
    entries = [
        {"id": "x", "conversations": [{"from": "human", "value": text} for text in talk]} for talk in talks
    ]
    file.write_text(json.dumps([*entries, {"id": "no talk"}]))


def test_the_first_two_turns_are_prompt_and_length_of_the_answer(file: Path, tokenizer: Tokenizer) -> None:
    write(file, ("What is it?", "A test.", "Why?", "Because."))
    (sample,) = sharegpt_samples(file, tokenizer, 1, 0)
    assert (sample.prompt, sample.prompt_len, sample.output_len) == ("What is it?", 11, 7)


def test_a_given_length_stands_in_for_that_of_the_answer(file: Path, tokenizer: Tokenizer) -> None:
    write(file, ("What is it?", "I"))
    (sample,) = sharegpt_samples(file, tokenizer, 1, 0, output_len=3)
    assert sample.output_len == 3


def test_too_short_and_too_long_conversations_are_left_out(file: Path, tokenizer: Tokenizer) -> None:
    write(
        file,
        ("Hi!", "Hello there"),
        ("Hello there", "Hi!"),
        ("x" * 1025, "Hello"),
        ("x" * 1000, "y" * 1049),
        ("alone here",),
        ("x" * 1000, "y" * 1048),
    )
    (sample,) = sharegpt_samples(file, tokenizer, 1, 0)
    assert (sample.prompt_len, sample.output_len) == (1000, 1048)


def test_some_repeat_where_the_file_has_too_few_and_a_seed_repeats_the_order(
    file: Path, tokenizer: Tokenizer
) -> None:
    write(file, *((f"Question {i}", f"Answer {i}") for i in range(5)))
    samples = sharegpt_samples(file, tokenizer, 12, 0)
    assert len(samples) == 12
    assert {sample.prompt for sample in samples[:5]} == {f"Question {i}" for i in range(5)}
    assert sharegpt_samples(file, tokenizer, 12, 0) == samples
    assert sharegpt_samples(file, tokenizer, 12, 1) != samples


@pytest.mark.parametrize("content", ["[]", "{}", "no json", '[{"conversations": [{"from": "human"}]}]'])
def test_another_form_is_refused_with_the_file(file: Path, tokenizer: Tokenizer, content: str) -> None:
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        sharegpt_samples(file, tokenizer, 1, 0)
    assert str(file) in caught.value.message
    assert caught.value.hint
