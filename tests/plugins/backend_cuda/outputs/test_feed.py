"""Token ids that stand for tokens of the step before."""

from __future__ import annotations

import numpy as np

from tests.cuda.outputs_bench import (
    Device,
    logits,
    select,
)


def test_a_step_is_fed_with_the_tokens_of_another() -> None:
    vocab, count = 300, 5
    device = Device(vocab, count)
    raw = logits(count, vocab, 6)
    device.run(raw, select(count))
    counts, ids = np.array([6, 1, 1, 0], np.int32), np.array([4, -1, -5, 7, -3, 0, -2], np.int32)
    memory = device.runtime.allocate(64)
    device.runtime.upload(memory, 0, counts)
    device.runtime.upload(memory, 16, ids)
    launch = device.outputs.feed(memory.pointer, memory.pointer + 16, 300)
    assert device.outputs.feed(memory.pointer, memory.pointer + 16, 300) is launch
    device.runtime.launch(launch)
    found = np.zeros_like(ids)
    device.runtime.download(found, memory, 16)
    best = raw.argmax(axis=1)
    assert found.tolist() == [4, best[0], best[4], 7, best[2], 0, -2]
