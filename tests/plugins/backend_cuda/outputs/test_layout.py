"""Sizes of the memory for output rows."""

from __future__ import annotations

import pytest

from tests.cuda.outputs_bench import (
    Device,
)


def test_the_bytes_are_known_before() -> None:
    for vocab, outputs, candidates in ((50, 1, 64), (30001, 7, 5)):
        device = Device(vocab, outputs, candidates)
        assert device.runtime.used_bytes == device.num_bytes


def test_more_candidates_than_the_kernels_select_are_refused() -> None:
    with pytest.raises(ValueError, match="129 candidates of 1000 logits are too many"):
        Device(1000, 1, candidates=129)
