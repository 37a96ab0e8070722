"""Blocks of conversations, cut into batches of similar lengths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from random import Random

import torch
from torch import Tensor

from guide.corpus import Corpus
from guide.tokens import Encoder, Example

BLOCK = 2048  # conversations drawn from one seed
# Which answer it is shows in its first words; the rest, once learnt, need not be repeated for every wording.
ANSWER_LIMITS = (None, 14, 14)


def block(
    corpus: Corpus, encoder: Encoder, number: int, tokens: int, longest: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of block ``number``: ids int64 [batch, length] and weights float32 of the same shape, padded with 0;
    a batch holds at most ``tokens`` tokens.
    """
    drawn = islice(corpus.conversations(number), BLOCK)
    limits = cycle(ANSWER_LIMITS)
    examples = [
        encoder.example(conversation, loose=True, longest_answer=next(limits)) for conversation in drawn
    ]
    examples.sort(key=lambda example: len(example.ids))
    groups = list(_groups([example for example in examples if len(example.ids) <= longest], tokens))
    Random(number).shuffle(groups)
    return (padded(group) for group in groups)


def padded(group: list[Example]) -> tuple[Tensor, Tensor]:
    """One batch; a token weighs 1 in the loss when it is the guide's own."""
    length = max(len(example.ids) for example in group)
    ids, weights = torch.zeros(len(group), length, dtype=torch.long), torch.zeros(len(group), length)
    for row, example in enumerate(group):
        count = len(example.ids)
        ids[row, :count] = torch.tensor(example.ids)
        weights[row, :count] = torch.tensor(example.answer, dtype=torch.float32)
    return ids, weights


def _groups(examples: list[Example], tokens: int) -> Iterator[list[Example]]:
    group: list[Example] = []
    for example in examples:
        if group and len(example.ids) * (len(group) + 1) > tokens:
            yield group
            group = []
        group.append(example)
    if group:
        yield group
