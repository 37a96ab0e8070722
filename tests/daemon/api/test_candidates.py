from __future__ import annotations

import math
import statistics
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import Selection
from llmd.api.candidates import OutputRows
from llmd.engine.batch import select_rows

RAW = np.array([[1.0, 4.0, 4.0, -2.0, 0.0], [0.5, 0.25, 3.0, 2.0, 1.0]], np.float32)


def selection(**changes: Any) -> Selection:
    return msgspec.structs.replace(select_rows(np.arange(2, dtype=np.int32)), **changes)


def three(**changes: Any) -> Selection:
    return msgspec.structs.replace(select_rows(np.arange(3, dtype=np.int32)), **changes)


def test_candidates_come_best_first_and_ties_by_the_lower_id() -> None:
    result = OutputRows(RAW, selection(), 3).result()
    assert result.ids.tolist() == [[1, 2, 0], [2, 3, 4]]
    assert result.edited.tolist() == [[4.0, 4.0, 1.0], [3.0, 2.0, 1.0]]


def test_fewer_candidates_than_asked_where_the_vocabulary_is_small() -> None:
    assert OutputRows(RAW, selection(), 64).result().ids.shape == (2, 5)


def test_edits_divide_above_zero_multiply_below_and_then_add() -> None:
    edits = {
        "edit_offsets": np.array([0, 2, 3], np.int32),
        "edit_ids": np.array([1, 3, 2], np.int32),
        "edit_factors": np.array([2.0, 2.0, 1.0], np.float32),
        "edit_biases": np.array([0.0, 1.0, -10.0], np.float32),
    }
    rows = OutputRows(RAW, selection(**edits), 5)
    assert rows.edited.tolist() == [[1.0, 2.0, 4.0, -3.0, 0.0], [0.5, 0.25, -7.0, 2.0, 1.0]]
    result = rows.result()
    assert result.ids[0, 0] == 2
    assert result.raw[1].tolist() == [2.0, 1.0, 0.5, 0.25, 3.0]


def test_logsumexp_is_over_raw_and_over_tempered_edited_logits() -> None:
    temperatures = np.array([0.5, 1.0], np.float32)
    result = OutputRows(RAW, selection(temperatures=temperatures), 2).result()
    assert result.raw_logsumexp[0] == pytest.approx(math.log(sum(math.exp(z) for z in RAW[0])))
    assert result.edited_logsumexp[0] == pytest.approx(math.log(sum(math.exp(z / 0.5) for z in RAW[0])))


def test_entropy_is_at_the_temperature_and_deviation_at_none() -> None:
    temperatures = np.array([0.5, 1.0], np.float32)
    result = OutputRows(RAW, selection(temperatures=temperatures), 2).result()
    for row, temperature in enumerate(temperatures):
        weights = [math.exp(z / temperature) for z in RAW[row]]
        shares = [weight / sum(weights) for weight in weights]
        assert result.edited_entropy[row] == pytest.approx(-sum(p * math.log(p) for p in shares), rel=1e-6)
    assert result.edited_deviation == pytest.approx([statistics.pstdev(row) for row in RAW.tolist()])
    assert result.num_allowed.tolist() == [5, 5]


def test_a_row_is_described_by_what_is_allowed() -> None:
    rows = OutputRows(np.repeat(RAW[:1], 3, axis=0), three(masked=np.ones(3, np.bool_)), 2)
    rows.apply_masks(np.array([[0b01001], [0b00100], [0]], np.uint32))
    result = rows.result()
    assert result.num_allowed.tolist() == [2, 1, 0]
    assert result.edited_deviation.tolist() == [1.5, 0.0, 0.0]
    p = 1 / (1 + math.exp(-3))
    expected = [-p * math.log(p) - (1 - p) * math.log(1 - p), 0.0, 0.0]
    assert result.edited_entropy == pytest.approx(expected, rel=1e-6)


def test_targets_and_raw_tops_are_unedited() -> None:
    edits = {
        "edit_offsets": np.array([0, 1, 1], np.int32),
        "edit_ids": np.array([1], np.int32),
        "edit_factors": np.ones(1, np.float32),
        "edit_biases": np.array([-9.0], np.float32),
    }
    targets = np.array([1, -1], np.int32)
    result = OutputRows(RAW, selection(**edits, targets=targets, raw_top=2), 2).result()
    assert result.target_raw[0] == 4.0
    assert math.isnan(result.target_raw[1])
    assert result.top_ids.tolist() == [[1, 2], [2, 3]]
    assert result.top_raw.tolist() == [[4.0, 4.0], [3.0, 2.0]]


def test_masked_rows_wait_for_their_masks() -> None:
    rows = OutputRows(RAW, selection(masked=np.array([True, False])), 5)
    with pytest.raises(ValueError, match="before apply_masks"):
        rows.result()
    rows.apply_masks(np.array([[0b01001]], np.uint32))
    result = rows.result()
    assert result.ids[0, :2].tolist() == [0, 3]
    assert result.edited[0, 2] == -np.inf
    assert result.edited_logsumexp[0] == pytest.approx(math.log(math.exp(1) + math.exp(-2)))
    assert result.ids[1, 0] == 2


def test_masks_of_another_shape_are_refused() -> None:
    rows = OutputRows(RAW, selection(masked=np.array([True, True])), 5)
    with pytest.raises(ValueError, match=r"expected uint32 \(2, 1\)"):
        rows.apply_masks(np.zeros((1, 1), np.uint32))


def test_the_devices_own_token_is_the_best_edited_candidate() -> None:
    assert OutputRows(RAW, selection(), 2).token(1) == 2
