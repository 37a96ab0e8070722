"""Masks of allowed tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.sampling.allowed import pack


@given(st.data())
def test_a_bit_is_set_for_each_allowed_token_and_no_other(data: st.DataObject) -> None:
    vocab = data.draw(st.integers(1, 100))
    ids = data.draw(st.lists(st.integers(0, vocab - 1), min_size=1))
    mask = pack(ids, vocab)
    assert mask.dtype == np.uint32
    assert mask.shape == (-(-vocab // 32),)
    assert {word * 32 + bit for word in range(len(mask)) for bit in range(32) if mask[word] >> bit & 1} == {
        *ids
    }


def test_a_mask_that_forks_share_is_not_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        pack([1], 5)[0] = 0
