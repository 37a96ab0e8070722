"""Rows of tables, with the bits of the reference."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.api.ops import Embed, EmbedPosition, EmbedTokenType
from llmd.builtin.reference.weights import to_float64
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.ops.embed import Table, TableFormat, launch_embed
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, one_op

FORMATS: tuple[TableFormat, ...] = ("f32", "f16", "bf16")


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(
    ("width", "scale"), [(5, 1.0), (48, math.sqrt(48)), (130, 2.5), (4096, math.sqrt(4096))]
)
def test_tokens_have_the_bits_of_the_reference(fmt: TableFormat, width: int, scale: float) -> None:
    op = Embed("out", TensorRef("table", (50, width)), scale)
    _check(op, fmt, width, entries=50)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("columns", "width"), [((8, 20), 24), ((5, 12), 24), ((0, 6), 13)])
def test_some_columns_of_a_table(fmt: TableFormat, columns: tuple[int, int], width: int) -> None:
    op = Embed("out", TensorRef("table", (50, width)), 1.7, columns)
    _check(op, fmt, columns[1] - columns[0], entries=50, entry_width=width)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("width", [6, 48])
def test_positions_and_token_types(fmt: TableFormat, width: int) -> None:
    _check(EmbedPosition("out", TensorRef("positions", (256, width))), fmt, width, entries=256)
    _check(EmbedTokenType("out", TensorRef("types", (2, width))), fmt, width, entries=2)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("width", [3, 48])
def test_a_table_may_begin_anywhere_in_a_tensor(fmt: TableFormat, width: int) -> None:
    _check(EmbedPosition("out", TensorRef("positions", (256, width))), fmt, width, entries=256, skipped=1)


def test_negative_ids_stand_for_tokens_of_the_step_before() -> None:
    table = RandomSource().read(Weight(TensorRef("table", (50, 12)), "f32"))
    values = to_float64(table).astype(np.float32)
    one = OneInstruction(one_op(Embed("out", TensorRef("table", (50, 12))), 0, (0,)), (12,), (values,))
    step = msgspec.structs.replace(make_step((5,)), token_ids=np.array([4, -1, -3, 0, -2], np.int32))
    device = OnDevice(one, step, {})
    tokens = device.keep(np.array([7, 49, 13], np.int32))
    device.context.step.fed = device.keep(np.array([tokens], np.uint64))
    launch = launch_embed(
        device.context, one.instruction.ops[0], device.rows, Table(device.keep(values), "f32")
    )
    np.testing.assert_array_equal(device.run(launch, 0)[0], values[[4, 7, 13, 0, 49]])


def _check(
    op: Embed | EmbedPosition | EmbedTokenType,
    fmt: TableFormat,
    width: int,
    *,
    entries: int,
    skipped: int = 0,
    entry_width: int | None = None,
) -> None:
    data = RandomSource().read(Weight(TensorRef("table", (skipped + entries, entry_width or width)), fmt))
    values = to_float64(data)[skipped:].astype(np.float32)
    one = OneInstruction(one_op(op, 0, (0,)), (width,), (values,))
    step = make_step((9, 1, 4))
    device = OnDevice(one, step, {})
    table = Table(device.keep(data.data) + skipped * data.data[0].nbytes, fmt)
    launch = launch_embed(device.context, one.instruction.ops[0], device.rows, table)
    (found,) = device.run(launch, 0)
    np.testing.assert_array_equal(found, one.reference(step, {})[0])
