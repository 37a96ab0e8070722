from __future__ import annotations

import math
import statistics
from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import Draws, LateEdits, Selection
from llmd.api.candidates import OutputRows
from llmd.api.draws import GREEDY, HOST, SAMPLED, CommonRows
from llmd.api.philox import uniform
from llmd.api.random import Purpose
from llmd.api.samplers import LLAMA_CPP_ORDER, OLLAMA_ORDER, SamplingParams
from llmd.engine.steps.batch import select_rows
from llmd.sampling.common import common_chain
from llmd.sampling.sampler import Sampler
from llmd.sampling.sampler_chain import selection_temperature

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


def draws(*kinds: int, **changes: Any) -> Draws:
    """Return draws at different places, over all tokens at temperature 1."""
    count = len(kinds)
    drawn = Draws(
        kinds=np.array(kinds, np.int8),
        table=np.tile((1.0, 1.0, np.inf, 1.0, -np.inf, -np.inf), (count, 1)),
        seeds=np.full(count, 2**63 + 5, np.uint64),
        positions=np.arange(7, 7 + count, dtype=np.uint64),
        choices=np.arange(count, dtype=np.uint64),
        token_only=np.zeros(count, np.bool_),
    )
    return msgspec.structs.replace(drawn, **changes)


def many_rows(count: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, 40)).astype(np.float32)


def tokens(rows: OutputRows) -> list[int]:
    found = rows.result().tokens
    assert found is not None
    return [int(token) for token in found]


def test_no_tokens_without_draws() -> None:
    assert OutputRows(RAW, selection(), 2).result().tokens is None


def test_each_row_is_drawn_by_its_kind() -> None:
    rows = OutputRows(RAW[[0, 0]], selection(draws=draws(HOST, GREEDY)), 2)
    assert tokens(rows) == [-1, 1]
    assert [rows.token(0), rows.token(1)] == [1, 1]


def test_sampled_rows_draw_with_the_number_of_their_address() -> None:
    raw = many_rows(60)
    table = np.tile((1.0, 0.7, 30.0, 0.9, -np.inf, -3.0), (60, 1))
    wanted = draws(*([SAMPLED] * 60), table=table)
    every = msgspec.structs.replace(select_rows(np.arange(60, dtype=np.int32)), draws=wanted)
    rows = OutputRows(raw, every, 1)
    u = [uniform(2**63 + 5, 7 + row, row, Purpose.SAMPLE) for row in range(60)]
    expected = [CommonRows(table, np.array(u)).draw_whole(row, raw[row]) for row in range(60)]
    assert tokens(rows) == expected
    assert [rows.token(row) for row in range(60)] == expected
    assert len(set(expected)) > 10


def test_only_the_token_of_a_row_may_be_known() -> None:
    only = np.array([True, False])
    rows = OutputRows(RAW, selection(draws=draws(GREEDY, GREEDY, token_only=only)), 2)
    result = rows.result()
    assert tokens(rows) == [1, 2]
    assert result.ids.tolist() == [[-1, -1], [2, 3]]
    assert rows.token(0) == 1


def late_edits(*rows: dict[int, float]) -> LateEdits:
    """Return biases by token id, for each late row."""
    biases = [bias for row in rows for bias in row.values()]
    return LateEdits(
        offsets=np.cumsum([0, *map(len, rows)]).astype(np.int32),
        ids=np.array([token for row in rows for token in row], np.int32),
        factors=np.ones(len(biases), np.float32),
        biases=np.array(biases, np.float32),
    )


def test_late_rows_wait_for_their_edits_and_are_then_drawn() -> None:
    late = np.array([False, True])
    rows = OutputRows(RAW, selection(late=late, draws=draws(GREEDY, GREEDY)), 2)
    for call in (rows.result, lambda: rows.token(0)):
        with pytest.raises(ValueError, match="before apply_edits"):
            call()
    rows.apply_edits(late_edits({2: -9.0, 4: 0.5}))
    assert rows.edited[1].tolist() == [0.5, 0.25, -6.0, 2.0, 1.5]
    assert rows.raw[1].tolist() == RAW[1].tolist()
    result = rows.result()
    assert tokens(rows) == [1, 3]
    assert result.ids.tolist() == [[1, 2], [3, 4]]
    assert result.num_allowed.tolist() == [5, 5]


def test_a_row_that_is_late_and_masked_waits_for_both() -> None:
    both = selection(late=np.array([True, True]), masked=np.array([True, False]), draws=draws(GREEDY, GREEDY))
    rows = OutputRows(RAW, both, 2)
    with pytest.raises(ValueError, match="apply_edits before apply_masks"):
        rows.apply_masks(np.array([[0b01001]], np.uint32))
    rows.apply_edits(late_edits({3: 9.0}, {}))
    with pytest.raises(ValueError, match="before apply_masks"):
        rows.result()
    rows.apply_masks(np.array([[0b01001]], np.uint32))
    result = rows.result()
    assert tokens(rows) == [3, 2]
    assert result.edited[0].tolist() == [7.0, 1.0]


def test_a_row_that_allows_nothing_draws_the_lowest_id() -> None:
    rows = OutputRows(RAW, selection(masked=np.ones(2, np.bool_), draws=draws(SAMPLED, GREEDY)), 2)
    rows.apply_masks(np.zeros((2, 1), np.uint32))
    assert [rows.token(0), rows.token(1)] == [0, 0]


def test_late_edits_of_other_rows_are_refused() -> None:
    rows = OutputRows(RAW, selection(late=np.array([False, True])), 2)
    with pytest.raises(ValueError, match="offsets is int32"):
        rows.apply_edits(late_edits({}, {}))


@pytest.mark.parametrize("kept", [1, 64])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.5, "top_p": 0.6},
        {"temperature": 3.0, "top_p": 0.97, "min_p": 0.01},
        {"top_k": 5},
        {"min_p": 0.05, "temperature": 2.0, "order": LLAMA_CPP_ORDER},
        {"top_k": 20, "top_p": 0.8, "min_p": 0.02, "order": OLLAMA_ORDER},
    ],
    ids=str,
)
def test_host_and_device_draw_the_same_tokens(changes: dict[str, Any], kept: int) -> None:
    params = SamplingParams(seed=2**60 + 3, choice=2, **changes)
    common, count = common_chain(params), 200
    assert common is not None
    every = msgspec.structs.replace(
        select_rows(
            np.arange(count, dtype=np.int32), np.full(count, selection_temperature(params), np.float32)
        ),
        draws=draws(
            *[SAMPLED] * count,
            table=np.tile(common.columns(), (count, 1)),
            seeds=np.full(count, params.seed, np.uint64),
            positions=np.arange(count, dtype=np.uint64),
            choices=np.full(count, params.choice, np.uint64),
        ),
    )
    rows = OutputRows(2 * many_rows(count), every, kept)
    sampler = Sampler(40)
    for request_id in range(count):
        sampler.add(request_id, params, [1])
    prepared = sampler.prepare(range(count), range(count))
    by_host = sampler.draw(prepared, rows.result(), lambda row: rows.edited[row]).tokens
    assert tokens(rows) == by_host
    assert len(set(by_host)) > 10
