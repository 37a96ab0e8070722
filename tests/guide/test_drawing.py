"""Training text that other processes draw."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

import numpy as np
from tokenizers import Tokenizer

from guide.batches import block
from guide.corpus import Corpus
from guide.decontamination import Heldout, wordings
from guide.drawing import drawn
from guide.plan import Plan
from guide.tokens import Encoder
from guide.topics import Book
from llmd.builtin.guide import guide_directory

PLAN = Plan(block=30, batch_tokens=2000, bpe_dropout=0.0)
TOKENIZER = guide_directory() / "tokenizer.json"
FIRST = 7


def test_blocks_come_in_order_as_one_process_would_draw_them(book: Book) -> None:
    corpus, encoder = Corpus(book, Heldout(wordings())), Encoder(Tokenizer.from_file(str(TOKENIZER)))
    with closing(drawn(TOKENIZER, PLAN, FIRST, processes=2)) as blocks:
        for number, batches in enumerate(islice(blocks, 6), FIRST):
            alone = block(corpus, encoder, number, PLAN)
            assert len(batches) == len(alone)
            for batch, expected in zip(batches, alone, strict=True):
                np.testing.assert_array_equal(batch.ids, expected.ids)
                np.testing.assert_array_equal(batch.own, expected.own)
