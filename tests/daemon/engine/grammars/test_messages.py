from __future__ import annotations

import os

import pytest

from llmd.engine.grammars.messages import MaskMemory, mask_words, new_mask_memory


@pytest.mark.parametrize(("vocab_size", "words"), [(1, 1), (32, 1), (33, 2), (151_936, 4748)])
def test_a_mask_has_a_bit_for_each_token(vocab_size: int, words: int) -> None:
    assert mask_words(vocab_size) == words


def test_what_one_side_writes_the_other_reads() -> None:
    descriptor = new_mask_memory(3, 40)
    mine, theirs = MaskMemory(descriptor, 40), MaskMemory(descriptor, 40)
    os.close(descriptor)
    theirs.first(2)[:] = [[1, 2], [3, 4]]
    assert mine.first(3).tolist() == [[1, 2], [3, 4], [0, 0]]
