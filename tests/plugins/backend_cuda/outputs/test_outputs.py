"""From logits to candidates and tokens on the device, compared with `llmd.api.candidates.OutputRows`."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Draws, LateEdits, Selection, StepResult
from llmd.api.draws import GREEDY, SAMPLED
from llmd.testing.selections import defined_fields
from tests.cuda.outputs_bench import (
    FILTERS,
    INF,
    Device,
    Float32,
    check_token,
    compare,
    expected_rows,
    full_selection,
    logits,
    random_draws,
    random_edits,
    select,
)


@pytest.mark.parametrize(
    ("vocab", "count"), [(1, 3), (20, 4), (50, 24), (131, 24), (1000, 12), (5000, 12), (130000, 4)]
)
@pytest.mark.parametrize("order", [1, "reverse"])
def test_everything_follows_the_definition(vocab: int, count: int, order: Any) -> None:
    device = Device(vocab, count, order=order)
    raw = logits(count, vocab, vocab)
    if vocab < 20:
        selection = select(count, raw_top=20)
        compare(device.run(raw, selection), expected_rows(raw, selection), selection)
        return
    selection, edits, masks = full_selection(count, vocab, vocab)
    expected = expected_rows(raw, selection, edits, masks)
    compare(device.run(raw, selection, edits, masks), expected, selection)
    outputs = np.array([2, 3, 0, 1, 1], np.int32)
    np.testing.assert_array_equal(device.outputs.raw_rows(outputs), raw[outputs])
    np.testing.assert_array_equal(device.outputs.edited_rows(outputs), expected.edited[outputs])
    np.testing.assert_array_equal(device.tokens(count), [expected.token(i) for i in range(count)])


@pytest.mark.parametrize(("vocab", "count"), [(50, 120), (131, 120), (1000, 120), (5000, 60), (130000, 12)])
def test_draws_with_every_filter(vocab: int, count: int) -> None:
    device = Device(vocab, count)
    for scale in (0.5, 4.0):
        raw = logits(count, vocab, 7, scale)
        selection = select(count, draws=random_draws(count, int(10 * scale), SAMPLED))
        found = device.run(raw, selection).tokens
        wanted = expected_rows(raw, selection).result().tokens
        assert found is not None
        assert wanted is not None
        for row in range(count):
            check_token(int(found[row]), int(wanted[row]), raw[row], selection, row)
        assert np.count_nonzero(found != wanted) <= count // 60


def odd_rows(vocab: int) -> Float32:
    """Return rows that are hard to sort or to add up."""
    rng = np.random.default_rng(5)
    ramp = np.arange(vocab, dtype=np.float32)
    few = np.full(vocab, -INF, np.float32)
    few[rng.choice(vocab, 5, replace=False)] = rng.normal(size=5)
    rows = [
        np.zeros(vocab),
        np.full(vocab, -INF),
        few,
        ramp,
        -ramp,
        np.where(ramp % 2 == 0, 0.0, -0.0),
        rng.integers(-2, 3, vocab),
        1000.0 + 1e-3 * rng.integers(0, 5, vocab),
        1e-12 * rng.normal(size=vocab),
        np.where(ramp == vocab // 2, 1000.0, rng.normal(size=vocab)),
        np.where(ramp % 3 == 1, -INF, 1e-20 * rng.integers(-9, 9, vocab)),
        1e15 * rng.normal(size=vocab),
        np.where(ramp < 40, 9.0, rng.normal(size=vocab)),
    ]
    return np.array(rows, np.float32)


@pytest.mark.parametrize("vocab", [50, 1000, 9001, 40000])
@pytest.mark.parametrize("kind", [GREEDY, SAMPLED])
def test_rows_with_ties_and_forbidden_ids(vocab: int, kind: int) -> None:
    raw = odd_rows(vocab)
    count = len(raw)
    device = Device(vocab, count)
    for first in range(0, len(FILTERS), 4):
        draws = random_draws(count, first, kind, FILTERS[first : first + 1])
        selection = select(count, draws=draws, raw_top=20, temperatures=np.full(count, 0.8, np.float32))
        compare(device.run(raw, selection), expected_rows(raw, selection), selection)


@pytest.mark.parametrize("candidates", [1, 5, 33, 128])
@pytest.mark.parametrize("vocab", [40, 3000, 40000])
def test_any_number_of_candidates(candidates: int, vocab: int) -> None:
    count = 4
    raw = logits(count, vocab, 3)
    selection, edits, masks = full_selection(count, vocab, 3)
    selection = msgspec.structs.replace(selection, draws=random_draws(count, 8, SAMPLED))
    found = Device(vocab, count, candidates).run(raw, selection, edits, masks)
    compare(found, expected_rows(raw, selection, edits, masks, candidates), selection)


@pytest.mark.parametrize("vocab", [131, 9000])
def test_rows_have_the_same_bits_in_any_batch(vocab: int) -> None:
    count = 9
    raw = logits(count, vocab, 2)
    selection, edits, masks = full_selection(count, vocab, 2)
    device = Device(vocab, count)
    together = device.run(raw, selection, edits, masks)
    together = msgspec.convert(
        {name: np.copy(getattr(together, name)) for name in StepResult.__struct_fields__}, StepResult
    )
    other = Device(vocab, count, order="reverse")
    for row in range(count):
        alone, late, mask = only(selection, edits, masks, row)
        found = other.run(raw[row : row + 1], alone, late, mask, bucket=4)
        for name, value in defined_fields(found, alone, 0).items():
            np.testing.assert_array_equal(value, getattr(together, name)[row], err_msg=f"{name} {row}")


def only(
    selection: Selection, edits: LateEdits, masks: NDArray[np.uint32], row: int
) -> tuple[Selection, LateEdits | None, NDArray[np.uint32] | None]:
    """Return the selection of one of its rows."""
    assert selection.draws is not None
    assert selection.late is not None
    one = slice(row, row + 1)
    own = slice(selection.edit_offsets[row], selection.edit_offsets[row + 1])
    fields = {name: getattr(selection.draws, name)[one] for name in Draws.__struct_fields__}
    alone = select(
        1,
        edit_offsets=np.array([0, own.stop - own.start], np.int32),
        edit_ids=selection.edit_ids[own],
        edit_factors=selection.edit_factors[own],
        edit_biases=selection.edit_biases[own],
        masked=selection.masked[one],
        late=selection.late[one],
        temperatures=selection.temperatures[one],
        targets=selection.targets[one],
        raw_top=selection.raw_top,
        draws=Draws(**fields),
    )
    late = mask = None
    if selection.late[row]:
        place = int(selection.late[:row].sum())
        part = slice(edits.offsets[place], edits.offsets[place + 1])
        late = LateEdits(
            np.array([0, part.stop - part.start], np.int32),
            edits.ids[part],
            edits.factors[part],
            edits.biases[part],
        )
    if selection.masked[row]:
        place = int(selection.masked[:row].sum())
        mask = masks[place : place + 1]
    return alone, late, mask


def test_results_need_edits_and_masks() -> None:
    device = Device(50, 2)
    selection = select(2, late=np.array([True, False]), masked=np.array([True, False]))
    device.outputs.upload(selection)
    assert not device.outputs.is_complete
    with pytest.raises(ValueError, match="before apply_edits"):
        device.outputs.result()
    with pytest.raises(ValueError, match="need apply_edits before apply_masks"):
        device.outputs.apply_masks(np.zeros((1, 2), np.uint32))
    device.outputs.apply_edits(random_edits(1, 50, 3, 0))
    with pytest.raises(ValueError, match="before apply_masks"):
        device.outputs.result()
    with pytest.raises(ValueError, match=r"masks are uint32 \(2, 2\), expected uint32 \(1, 2\)"):
        device.outputs.apply_masks(np.zeros((2, 2), np.uint32))


def test_launches_can_be_captured() -> None:
    device = Device(500, 4)
    runtime, outputs = device.runtime, device.outputs

    def run() -> None:
        for launch in outputs.before_late(4):
            runtime.launch(launch)

    graph = runtime.capture(run)
    for count in (4, 1, 3):
        raw = logits(count, 500, count)
        selection = select(count, draws=random_draws(count, count))
        runtime.upload(outputs.raw, 0, raw)
        outputs.upload(selection)
        graph.launch()
        outputs.download()
        compare(outputs.result(), expected_rows(raw, selection), selection)
