"""The outputs of a ticket on the simulated device, and selections with everything that a device must do."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import Draws, LateEdits, Selection, StageLimits, StepResult
from llmd.api.candidates import OutputRows
from llmd.api.draws import HOST, SAMPLED, best_first, draw_whole_rows
from llmd.api.philox import uniforms
from llmd.api.random import Purpose
from llmd.testing.selections import defined_fields, plain_selection
from llmd_backend_cuda.outputs import Outputs
from tests.cuda.simt.runtime import SimtRuntime

Float32 = NDArray[np.float32]
INF = math.inf
SUMS = ("raw_logsumexp", "edited_logsumexp", "edited_entropy", "edited_deviation")
"""Fields that may differ by 1e-5; all others are exact."""
FILTERS = (
    (1.0, 1.0, INF, 1.0, -INF, -INF),
    (0.7, 0.7, INF, 1.0, -INF, -INF),
    (1.5, 1.5, 5.0, 1.0, -INF, -INF),
    (1.0, 1.0, 1.0, 1.0, -INF, -INF),
    (1.3, 1.3, INF, 0.9, -INF, -INF),
    (1.0, 2.0, INF, 0.8, -INF, -INF),
    (2.0, 2.0, INF, 1.0, -2.5, -INF),
    (1.2, 1.2, 90.0, 0.95, -4.0, -INF),
    (1.0, 0.8, 40.0, 0.97, -INF, -3.0),
    (1.0, 3.0, 1000.0, 0.999, -INF, -6.0),
    (3.0, 1e-3, INF, 0.5, -9.0, -INF),
    (1.0, 1.0, 200.0, 1.0, -INF, -INF),
)


class Device:
    """The outputs of a ticket, by default on the simulated device."""

    def __init__(
        self, vocab: int, max_outputs: int, candidates: int = 64, runtime: Any = None, **options: Any
    ) -> None:
        self.runtime = runtime or SimtRuntime(**options)
        self.vocab = vocab
        limits = StageLimits(
            max_rows=max_outputs, max_sequences=1, max_outputs=max_outputs, num_candidates=candidates
        )
        self.outputs = Outputs(self.runtime, vocab, limits)
        self.num_bytes = Outputs.num_bytes(vocab, limits)

    def run(
        self,
        raw: Float32,
        selection: Selection,
        edits: LateEdits | None = None,
        masks: NDArray[np.uint32] | None = None,
        bucket: int = 0,
    ) -> StepResult:
        outputs, runtime = self.outputs, self.runtime
        if raw.size:
            runtime.upload(outputs.raw, 0, raw)
        outputs.upload(selection)
        for launch in outputs.before_late(max(bucket, selection.num_rows)):
            runtime.launch(launch)
        if edits is not None:
            outputs.apply_edits(edits)
        if masks is not None:
            outputs.apply_masks(masks)
        outputs.download()
        runtime.synchronize()
        return outputs.result()

    def tokens(self, count: int) -> NDArray[np.int32]:
        """Return the tokens for the step that is fed from this ticket."""
        found = np.zeros(count, np.int32)
        self.runtime.download(found, self.outputs._results.memory, 0)
        return found


def select(count: int, **fields: Any) -> Selection:
    """Return a selection without edits."""
    return msgspec.structs.replace(plain_selection(range(count)), **fields)


def random_draws(count: int, seed: int, kinds: Any = None, filters: Any = FILTERS) -> Draws:
    rng = np.random.default_rng(seed)
    kinds = np.minimum(rng.integers(0, 5, count), SAMPLED) if kinds is None else np.full(count, kinds)
    return Draws(
        kinds=kinds.astype(np.int8),
        table=np.array([filters[i % len(filters)] for i in range(count)], np.float64).reshape(-1, 6),
        seeds=rng.integers(0, 2**64, count, dtype=np.uint64),
        positions=rng.integers(0, 2**20, count).astype(np.uint64),
        choices=rng.integers(0, 4, count).astype(np.uint64),
        token_only=(kinds != HOST) & (rng.integers(0, 2, count) == 1),
    )


def random_edits(count: int, vocab: int, per_row: int, seed: int) -> LateEdits:
    rng = np.random.default_rng(seed)
    ids = [rng.choice(vocab, per_row, replace=False) for _ in range(count)]
    return LateEdits(
        offsets=np.arange(count + 1, dtype=np.int32) * np.int32(per_row),
        ids=np.concatenate([*ids, np.zeros(0)]).astype(np.int32),
        factors=rng.uniform(0.3, 3.0, count * per_row).astype(np.float32),
        biases=rng.normal(0.0, 3.0, count * per_row).astype(np.float32),
    )


def random_masks(count: int, vocab: int, seed: int) -> NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, 1 << 32, (count, -(-vocab // 32)), dtype=np.uint32)


def logits(count: int, vocab: int, seed: int, scale: float = 3.0) -> Float32:
    return np.random.default_rng(seed).normal(0.0, scale, (count, vocab)).astype(np.float32)


def expected_rows(
    raw: Float32,
    selection: Selection,
    edits: LateEdits | None = None,
    masks: NDArray[np.uint32] | None = None,
    candidates: int = 64,
) -> OutputRows:
    with np.errstate(invalid="ignore"):
        rows = OutputRows(raw, selection, candidates)
        if edits is not None:
            rows.apply_edits(edits)
        if masks is not None:
            rows.apply_masks(masks)
    return rows


def compare(mine: StepResult, expected: OutputRows, selection: Selection) -> None:
    wanted = expected.result()
    for row in range(selection.num_rows):
        found = defined_fields(mine, selection, row)
        for name, value in defined_fields(wanted, selection, row).items():
            if name == "tokens":
                check_token(int(found[name]), int(value), expected.edited[row], selection, row)
            elif name in SUMS:
                np.testing.assert_allclose(
                    float(found[name]), float(value), rtol=1e-5, atol=1e-5, err_msg=f"{name} of row {row}"
                )
            else:
                np.testing.assert_array_equal(found[name], value, err_msg=f"{name} of row {row}")


def check_token(mine: int, wanted: int, edited: Float32, selection: Selection, row: int) -> None:
    """Another token than that of the definition must be its neighbour, with u next to the border of both."""
    draws = selection.draws
    if mine == wanted:
        return
    assert draws is not None
    assert draws.kinds[row] == SAMPLED
    order = best_first(edited)
    one = slice(row, row + 1)
    u = uniforms(draws.seeds[one], draws.positions[one], draws.choices[one], Purpose.SAMPLE)
    near = [
        order[draw_whole_rows(edited[None, order], draws.table[one], u + shift)[0]] for shift in (-1e-7, 1e-7)
    ]
    assert mine in near, f"row {row}: token {mine}, expected {wanted} or one of {near}"


def full_selection(count: int, vocab: int, seed: int) -> tuple[Selection, LateEdits, NDArray[np.uint32]]:
    """Return a selection with everything: edits, late edits, masks, draws, targets."""
    rng = np.random.default_rng(seed)
    late, masked = np.arange(count) % 3 == 1, np.arange(count) % 4 >= 2
    edits = random_edits(count, vocab, 5, seed)
    kept = np.repeat(~late, 5)
    selection = select(
        count,
        edit_offsets=np.concatenate([[0], np.cumsum(np.where(late, 0, 5))]).astype(np.int32),
        edit_ids=edits.ids[kept],
        edit_factors=edits.factors[kept],
        edit_biases=edits.biases[kept],
        late=late,
        masked=masked,
        temperatures=rng.uniform(0.3, 2.0, count).astype(np.float32),
        targets=rng.integers(-1, vocab, count).astype(np.int32),
        raw_top=7,
        draws=random_draws(count, seed),
    )
    late_edits = random_edits(int(late.sum()), vocab, 9, seed + 1)
    return selection, late_edits, random_masks(int(masked.sum()), vocab, seed + 2)
