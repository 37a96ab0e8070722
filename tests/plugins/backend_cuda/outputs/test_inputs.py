"""What a selection copies to the device."""

from __future__ import annotations

import numpy as np

from llmd.api import LateEdits
from tests.cuda.outputs_bench import (
    Device,
    compare,
    expected_rows,
    logits,
    random_edits,
    select,
)


def test_more_edits_than_there_is_memory_for() -> None:
    vocab, count = 2000, 2
    edits = random_edits(count, vocab, vocab - 1, 4)
    late = np.array([False, True])
    own = slice(0, vocab - 1)
    selection = select(
        count,
        edit_offsets=np.array([0, vocab - 1, vocab - 1], np.int32),
        edit_ids=edits.ids[own],
        edit_factors=edits.factors[own],
        edit_biases=edits.biases[own],
        late=late,
    )
    later = LateEdits(
        np.array([0, vocab - 1], np.int32), edits.ids[vocab - 1 :], edits.factors[own], edits.biases[own]
    )
    raw = logits(count, vocab, 4)
    device = Device(vocab, count)
    compare(device.run(raw, selection, later), expected_rows(raw, selection, later), selection)
    plain = select(count)
    compare(device.run(raw, plain), expected_rows(raw, plain), plain)
