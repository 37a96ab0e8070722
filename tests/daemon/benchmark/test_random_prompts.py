"""Random prompts have the requested lengths, and the same seed gives the same prompts."""

from __future__ import annotations

from itertools import chain

import pytest

from llmd.api.errors import ConfigError
from llmd.benchmark.random_prompts import RandomShape, random_samples
from llmd.builtin.guide import guide_directory
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer(guide_directory())


def test_token_ids_have_exactly_the_length_and_are_no_control_tokens(tokenizer: Tokenizer) -> None:
    samples = random_samples(RandomShape(100, 7), tokenizer, 20, 0, as_token_ids=True)
    assert {(len(sample.prompt), sample.prompt_len, sample.output_len) for sample in samples} == {
        (100, 100, 7)
    }
    used = set(chain.from_iterable(sample.prompt for sample in samples))
    assert len(used) > 500
    assert not any(tokenizer.is_special(i) for i in used if isinstance(i, int))


def test_texts_say_how_many_tokens_they_are(tokenizer: Tokenizer) -> None:
    for sample in random_samples(RandomShape(64, 7), tokenizer, 20, 0):
        assert isinstance(sample.prompt, str)
        assert sample.prompt_len == len(tokenizer.encode(sample.prompt, parse_special=False))
        assert abs(sample.prompt_len - 64) <= 2


def test_lengths_cover_the_range_and_its_ends(tokenizer: Tokenizer) -> None:
    samples = random_samples(RandomShape(10, 5, 0.5), tokenizer, 400, 0, as_token_ids=True)
    assert {sample.prompt_len for sample in samples} == set(range(5, 16))
    assert {sample.output_len for sample in samples} == set(range(2, 9))


def test_prompts_share_their_prefix_alone(tokenizer: Tokenizer) -> None:
    shape = RandomShape(20, 5, prefix_len=32)
    first, second = random_samples(shape, tokenizer, 2, 0, as_token_ids=True)
    assert first.prompt[:32] == second.prompt[:32]
    assert first.prompt[32:] != second.prompt[32:]
    assert first.prompt_len == 52


def test_a_seed_repeats_the_samples_and_another_does_not(tokenizer: Tokenizer) -> None:
    shape = RandomShape(30, 5, 0.3)
    assert random_samples(shape, tokenizer, 5, 1) == random_samples(shape, tokenizer, 5, 1)
    assert random_samples(shape, tokenizer, 5, 1) != random_samples(shape, tokenizer, 5, 2)


@pytest.mark.parametrize("shape", [RandomShape(0), RandomShape(1, 5, 0.5), RandomShape(10, 5, 1.0)])
def test_shapes_that_allow_empty_prompts_or_have_no_range_are_refused(
    tokenizer: Tokenizer, shape: RandomShape
) -> None:
    with pytest.raises(ConfigError) as caught:
        random_samples(shape, tokenizer, 3, 0)
    assert "--random-range-ratio" in caught.value.message + caught.value.hint
