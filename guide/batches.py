"""Blocks of conversations, cut into batches of similar lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from guide.corpus import Corpus
from guide.plan import Plan
from guide.tokens import Encoder, Example

# Which answer it is shows in its first words; the rest, once learnt, need not be repeated for every wording.
ANSWER_LIMITS = (None, 14, 14)


@dataclass(frozen=True)
class Batch:
    """Token ids, int16 [batch, length], padded with 0;
    ``own``, bool of the same shape, marks the guide's own tokens.
    """

    ids: NDArray[np.int16]
    own: NDArray[np.bool_]


def block(corpus: Corpus, encoder: Encoder, number: int, plan: Plan) -> list[Batch]:
    """The batches of block ``number``, each of at most the plan's tokens, padding included."""
    drawn = islice(corpus.conversations(number), plan.block)
    limits = cycle(ANSWER_LIMITS)
    examples = [
        encoder.example(conversation, loose=True, longest_answer=next(limits)) for conversation in drawn
    ]
    examples.sort(key=lambda example: len(example.ids))
    short = [example for example in examples if len(example.ids) <= plan.longest]
    groups = list(_groups(short, plan.batch_tokens))
    Random(number).shuffle(groups)
    return [padded(group) for group in groups]


def padded(group: list[Example]) -> Batch:
    """One batch."""
    length = max(len(example.ids) for example in group)
    ids, own = np.zeros((len(group), length), np.int16), np.zeros((len(group), length), np.bool_)
    for row, example in enumerate(group):
        ids[row, : len(example.ids)] = example.ids
        own[row, : len(example.ids)] = example.answer
    return Batch(ids, own)


def _groups(examples: list[Example], tokens: int) -> Iterator[list[Example]]:
    group: list[Example] = []
    for example in examples:
        if group and len(example.ids) * (len(group) + 1) > tokens:
            yield group
            group = []
        group.append(example)
    if group:
        yield group
