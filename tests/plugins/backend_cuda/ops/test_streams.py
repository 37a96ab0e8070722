"""The weights of streams and their mixtures, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api import CollapseStreams, MixStreams, StageLimits, StreamWeights, TensorRef
from llmd.api.step import Float32
from llmd.models.plain_formats import from_float32, to_float32
from llmd_backend_cuda.ops.embed import Table, TableFormat
from llmd_backend_cuda.ops.streams import (
    MAX_STREAMS,
    launch_collapse_streams,
    launch_mix_streams,
    stream_bytes,
    stream_weights_launches,
)
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows
from tests.cuda.simulated import NEEDS_COMPILER

pytestmark = NEEDS_COMPILER

ROWS = 6
BOUND = 1e-12
"""Of the NMSE; sums are float32."""


def weights_of(x: Float32, streams: int, rounds: int, fmt: TableFormat) -> tuple[Float32, Float32]:
    """Return the weights of streams that the kernels make, and those of the reference."""
    width = x.shape[1]
    count = streams * (streams + 2) if rounds else streams
    refs = (
        TensorRef("fn", (count, width)),
        TensorRef("base", (count,)),
        TensorRef("scale", (3 if rounds else 1,)),
    )
    stored = from_float32(random_rows(count, width, 2, 0.1), fmt)
    vectors = [random_rows(1, ref.shape[0], seed)[0] for seed, ref in enumerate(refs[1:], 3)]
    op = StreamWeights("x", "out", *refs, streams, 1e-3, 1e-4, rounds)
    one = OneInstruction(one_op(op, 1, (0, 1, 2)), (width, count), (to_float32(stored, fmt), *vectors))
    step = make_step((len(x),))
    device = OnDevice(one, step, {0: x})
    table = Table(device.keep(stored), fmt)
    limits = StageLimits(device.rows, 1, 1)
    assert stream_bytes(one.program, limits) == 4 * device.rows * (count + 1)
    products = device.runtime.allocate(stream_bytes(one.program, limits))
    slotted = one.instruction.ops[0]
    for launch in stream_weights_launches(device.context, slotted, device.rows, table, products):
        device.runtime.launch(launch)
    return device.read(1), one.reference(step, {0: x})[1]


@pytest.mark.parametrize(
    ("streams", "rounds", "width", "fmt"),
    [
        (4, 20, 4 * 64, "f32"),
        (4, 0, 4 * 300, "bf16"),
        (3, 1, 3 * 5, "f16"),
        (1, 3, 50, "f32"),
        (MAX_STREAMS, 2, 8 * 200, "f16"),
    ],
)
def test_weights_are_those_of_the_reference(streams: int, rounds: int, width: int, fmt: TableFormat) -> None:
    x = random_rows(ROWS, width, 1, 2.0)
    found, expected = weights_of(x, streams, rounds, fmt)
    assert nmse(found, expected) < BOUND
    for row in (0, 5):
        np.testing.assert_array_equal(
            weights_of(x[row : row + 1], streams, rounds, fmt)[0], found[row : row + 1]
        )


def test_the_matrices_have_sums_of_about_one() -> None:
    found, _ = weights_of(random_rows(ROWS, 64, 1), 4, 20, "f32")
    matrices = found[:, 8:].reshape(ROWS, 4, 4)
    np.testing.assert_allclose(matrices.sum(axis=1), 1, atol=1e-2)
    np.testing.assert_allclose(matrices.sum(axis=2), 1, atol=1e-2)


@pytest.mark.parametrize(("streams", "width"), [(4, 64), (3, 7), (8, 300), (1, 5)])
def test_streams_are_mixed(streams: int, width: int) -> None:
    count = streams * (streams + 2)
    x, y, weights = (
        random_rows(ROWS, size, seed) for seed, size in enumerate((streams * width, width, count))
    )
    step = make_step((ROWS,))
    mix = OneInstruction(
        one_op(MixStreams("x", "y", "weights", "out", streams), 3),
        (streams * width, width, count, streams * width),
    )
    device = OnDevice(mix, step, {0: x, 1: y, 2: weights})
    (found,) = device.run(launch_mix_streams(device.context, mix.instruction.ops[0], device.rows), 3)
    assert nmse(found, mix.reference(step, {0: x, 1: y, 2: weights})[3]) < BOUND
    collapse = OneInstruction(
        one_op(CollapseStreams("x", "weights", "out", streams), 2), (streams * width, count, width)
    )
    device = OnDevice(collapse, step, {0: x, 1: weights})
    (found,) = device.run(
        launch_collapse_streams(device.context, collapse.instruction.ops[0], device.rows), 2
    )
    assert nmse(found, collapse.reference(step, {0: x, 1: weights})[2]) < BOUND
