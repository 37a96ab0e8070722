"""What is copied from the device."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.draws import GREEDY
from tests.cuda.outputs_bench import (
    Device,
    logits,
    random_draws,
    select,
)


def test_only_tokens_are_copied_if_nothing_else_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    vocab, count = 3000, 8
    device = Device(vocab, count, deferred=True)
    raw = logits(count, vocab, 1)
    draws = msgspec.structs.replace(random_draws(count, 1, GREEDY), token_only=np.ones(count, np.bool_))
    selection = select(count, draws=draws)
    copied: list[int] = []
    download = device.runtime.download

    def count_bytes(array: NDArray[Any], *place: Any) -> None:
        copied.append(array.nbytes)
        download(array, *place)

    monkeypatch.setattr(device.runtime, "download", count_bytes)
    found = device.run(raw, selection)
    assert copied == [4 * count]
    np.testing.assert_array_equal(found.tokens, raw.argmax(axis=1))


def test_a_step_without_output_rows() -> None:
    found = Device(50, 2).run(np.zeros((0, 50), np.float32), select(0, draws=random_draws(0, 1)))
    assert found.ids.shape == (0, 50)
    assert found.tokens is not None
    assert found.tokens.shape == (0,)
