"""Random prompts of random lengths: the data set ``random`` of ``vllm bench serve``."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.benchmark.load import Sample
from llmd.chat.tokenizers.tokenizer import Tokenizer

TRIES = 10
REPLACEMENT = "\ufffd"


class RandomShape(Struct, frozen=True):
    """Lengths in tokens, drawn uniformly from ``[⌊len · (1 − range_ratio)⌋, ⌈len · (1 + range_ratio)⌉]``."""

    input_len: int = 1024
    output_len: int = 128
    range_ratio: float = 0.0
    prefix_len: int = 0
    """Tokens before each prompt that all prompts share; not part of ``input_len``."""


def random_samples(
    shape: RandomShape, tokenizer: Tokenizer, count: int, seed: int, *, as_token_ids: bool = False
) -> list[Sample]:
    """Return samples of a shape, the same for the same seed.

    Prompts of token ids have exactly the drawn lengths. Texts include the BOS that the tokenizer adds. Few
    tokenizers round-trip every random token, so a text may be a few tokens longer or shorter.

    Raises:
        ConfigError: the shape allows empty prompts, or its ``range_ratio`` is out of range.
    """
    special = 0 if as_token_ids else len(tokenizer.vocabulary.prefix_ids)
    low, high = _bounds(max(shape.input_len - special, 0), shape.range_ratio)
    if shape.prefix_len + low < 1:
        raise ConfigError(
            f"prompts of {shape.input_len} tokens with a range of {shape.range_ratio:g} may be empty",
            hint="raise --random-input-len or --random-prefix-len, or lower --random-range-ratio",
        )
    shortest, longest = (max(1, bound) for bound in _bounds(shape.output_len, shape.range_ratio))
    rng = np.random.default_rng(seed)
    input_lens = rng.integers(low, high + 1, count).tolist()
    output_lens = rng.integers(shortest, longest + 1, count).tolist()
    source = RandomTokens(tokenizer, rng)
    prefix = source.draw(shape.prefix_len)
    samples = []
    for input_len, output_len in zip(input_lens, output_lens, strict=True):
        ids = prefix + source.draw(input_len)
        if as_token_ids:
            samples.append(Sample(tuple(ids), len(ids), output_len))
        else:
            text, text_len = source.text(ids)
            samples.append(Sample(text, text_len + special, output_len))
    return samples


def _bounds(length: int, ratio: float) -> tuple[int, int]:
    if not 0.0 <= ratio < 1.0:
        raise ConfigError(
            f"--random-range-ratio is {ratio:g}",
            hint="give a number of at least 0 (all lengths equal) and below 1",
        )
    return math.floor(length * (1 - ratio)), math.ceil(length * (1 + ratio))


class RandomTokens:
    """Draws tokens that are whole characters of text: no control tokens, no partial characters."""

    def __init__(self, tokenizer: Tokenizer, rng: np.random.Generator) -> None:
        texts = ((i, tokenizer.token_text(i)) for i in range(tokenizer.vocab_size))
        self._ids = np.array(
            [i for i, text in texts if text and REPLACEMENT not in text and not tokenizer.is_special(i)]
        )
        self._tokenizer = tokenizer
        self._rng = rng

    def draw(self, count: int) -> list[int]:
        """Draw ``count`` token ids uniformly."""
        ids: list[int] = self._rng.choice(self._ids, count).tolist()
        return ids

    def text(self, ids: list[int]) -> tuple[str, int]:
        """Return a text with about as many tokens as ``ids``, which starts like them, and its number of
        tokens.
        """
        wanted, text = len(ids), ""
        for _ in range(TRIES):
            text = self._tokenizer.decode(ids)
            ids = self._tokenizer.encode(text, add_special=False, parse_special=False)
            if len(ids) == wanted:
                break
            ids = ids[:wanted] + self.draw(max(0, wanted - len(ids)))
        return text, len(self._tokenizer.encode(text, add_special=False, parse_special=False))
