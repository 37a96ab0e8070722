"""A selection is packed in rows of words."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.api import LateEdits
from llmd.api.draws import SAMPLED
from llmd_backend_vulkan.outputs.inputs import all_edits, described_rows, pack_selection
from llmd_backend_vulkan.outputs.layout import HEADER_WORDS, ROW_WORDS, OutputsLayout
from tests.plugins.backend_vulkan.outputs.test_outputs import INF, LIMITS, VOCAB, draws_of, select

LAYOUT = OutputsLayout(VOCAB, LIMITS)


def test_edits_of_late_rows_come_last() -> None:
    selection = msgspec.structs.replace(
        select(3),
        late=np.array([True, False, True]),
        edit_offsets=np.array([0, 0, 1, 1], np.int32),
        edit_ids=np.array([7], np.int32),
        edit_factors=np.ones(1, np.float32),
        edit_biases=np.zeros(1, np.float32),
    )
    ones = np.ones(3, np.float32)
    late = LateEdits(np.array([0, 1, 3], np.int32), np.array([4, 5, 6], np.int32), ones, ones)
    edits = all_edits(selection, late)
    assert edits.words[:, 0].tolist() == [7, 4, 5, 6]
    assert edits.first.tolist() == [1, 0, 2]
    assert edits.counts.tolist() == [1, 1, 2]


def test_draws_are_packed_as_float32() -> None:
    draws = draws_of([(0.5, 1e-60, INF, 0.9, -INF, -2.0)] * 2, [SAMPLED] * 2)
    selection = msgspec.structs.replace(select(2, raw_top=5), draws=draws, masked=np.array([False, True]))
    out = np.full(LAYOUT.selection_words, 9, np.uint32)
    pack_selection(out, LAYOUT, selection, all_edits(selection, None))
    assert out[:HEADER_WORDS].tolist() == [2, 5, 0, 0]
    row = out[HEADER_WORDS + ROW_WORDS :][:ROW_WORDS]
    assert row[:4].view(np.float32)[0] == selection.temperatures[1]
    assert row[1:4].tolist() == [5, SAMPLED, 1]
    assert row[6] == 0
    assert out[HEADER_WORDS + 6] == 0xFFFFFFFF
    floats = row.view(np.float32)
    np.testing.assert_array_equal(floats[8:10], np.array([0.5, 1e-30], np.float32))
    assert row[10] == VOCAB
    np.testing.assert_array_equal(floats[11:14], np.array([0.9, -INF, -2.0], np.float32))
    assert row[14:18].tolist() == [7919 << 24 & 0xFFFFFFFF, 7919 >> 8, 12, 1]


def test_all_rows_are_described_without_draws() -> None:
    assert described_rows(select(3)).all()
    draws = draws_of([(1.0, 1.0, INF, 1.0, -INF, -INF)] * 2, [SAMPLED] * 2)
    one = msgspec.structs.replace(draws, token_only=np.array([True, False]))
    assert described_rows(msgspec.structs.replace(select(2), draws=one)).tolist() == [False, True]
