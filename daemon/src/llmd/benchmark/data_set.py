"""The data sets of a load."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from llmd.benchmark.load import Sample
from llmd.benchmark.random_prompts import RandomShape, random_samples
from llmd.benchmark.sharegpt import sharegpt_samples
from llmd.chat.tokenizers.tokenizer import Tokenizer


class RandomData(Struct, frozen=True):
    """Random tokens, sent as text or as token ids."""

    shape: RandomShape = RandomShape()
    as_token_ids: bool = False

    def samples(self, tokenizer: Tokenizer, count: int, seed: int) -> list[Sample]:
        return random_samples(self.shape, tokenizer, count, seed, as_token_ids=self.as_token_ids)


class ShareGptData(Struct, frozen=True):
    """A file of conversations; ``output_len`` replaces the lengths of its answers."""

    path: Path
    output_len: int | None = None

    def samples(self, tokenizer: Tokenizer, count: int, seed: int) -> list[Sample]:
        return sharegpt_samples(self.path, tokenizer, count, seed, output_len=self.output_len)


DataSet = RandomData | ShareGptData
