"""Blocks of conversations as batches of token ids."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from guide.batches import Batch, block, padded
from guide.corpus import Corpus
from guide.decontamination import Heldout
from guide.plan import Plan
from guide.tokens import Encoder, Example
from guide.topics import Book
from llmd.builtin.guide import guide_directory

PLAN = Plan(block=200, batch_tokens=3000, longest=300)


@pytest.fixture(scope="module")
def batches(book: Book) -> list[Batch]:
    encoder = Encoder(Tokenizer.from_file(str(guide_directory() / "tokenizer.json")))
    return block(Corpus(book, Heldout(())), encoder, 3, PLAN)


def test_a_batch_has_at_most_the_tokens_of_the_plan_and_no_longer_row(batches: list[Batch]) -> None:
    assert len(batches) > 5
    assert max(batch.ids.size for batch in batches) <= PLAN.batch_tokens
    assert max(batch.ids.shape[1] for batch in batches) <= PLAN.longest


def test_the_rows_of_a_batch_are_of_similar_lengths(batches: list[Batch]) -> None:
    padding = sum(int((batch.ids == 0).sum()) for batch in batches)  # a few ends of turns among it
    assert padding < 0.2 * sum(batch.ids.size for batch in batches)


def test_padding_is_nobodys_own() -> None:
    batch = padded([Example([5, 6, 7], [False, True, True]), Example([8], [True])])
    np.testing.assert_array_equal(batch.ids, [[5, 6, 7], [8, 0, 0]])
    np.testing.assert_array_equal(batch.own, [[False, True, True], [True, False, False]])
