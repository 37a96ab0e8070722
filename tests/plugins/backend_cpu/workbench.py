"""One op on one stage, with arrays in and arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    HIDDEN,
    INTEGER_FORMATS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    Attention,
    GroupScales,
    Head,
    HostHidden,
    IntegerFormat,
    KVDtype,
    KVGroup,
    Linear,
    ModelPlan,
    Op,
    Part,
    Program,
    Selection,
    StageLimits,
    Step,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.api.step import Float32
from llmd.models.lowering import lower
from llmd.testing import integer_weights
from llmd.testing.scaled_weights import random_floats
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.stage import CpuStage

VOCAB = 300
CONTEXT = 4096
FLOAT_FORMATS = (*PLAIN_FORMATS, *SCALED_FORMATS)


class Weights:
    """A `TensorSource` of given weights and GGUF blocks, uint8 ``[out, bytes of a row]``."""

    def __init__(
        self,
        weights: Mapping[str, WeightData],
        packed: Path | None = None,
        blocks: Mapping[str, NDArray[np.uint8]] = MappingProxyType({}),
    ) -> None:
        self._weights = weights
        self._blocks = blocks
        self.packed = packed

    def reading_ahead(self, weights: Sequence[Weight]) -> AbstractContextManager[Sequence[int]]:
        return nullcontext(range(len(weights)))

    def stored_blocks(self, weight: Weight) -> NDArray[np.uint8] | None:
        return self._blocks.get(weight.ref.name)

    def read(self, weight: Weight) -> WeightData:
        return self._weights[weight.ref.name]


def random_rows(rows: int, width: int, seed: int = 0) -> Float32:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def plain(values: NDArray[np.generic]) -> WeightData:
    return WeightData("f32", np.ascontiguousarray(values, np.float32))


def in_format(values: NDArray[np.floating[Any]], fmt: str) -> WeightData:
    """The values in a plain format (truncated in bf16), or random codes of that shape."""
    if fmt in INTEGER_FORMATS:
        return random_integers(fmt, *values.shape)
    if fmt in SCALED_FORMATS:
        return random_floats(fmt, values.shape, 1.0, np.random.default_rng(values.shape))
    if fmt == "f16":
        return WeightData(fmt, values.astype(np.float16))
    if fmt == "bf16":
        return WeightData(fmt, (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return plain(values)


def random_integers(fmt: str, num_rows: int, row_len: int, *, plain_scales: bool = False) -> WeightData:
    """Random codes of an integer format with random scales, or with scales and minimums of 1."""
    form = INTEGER_FORMATS[fmt]
    draw = np.random.default_rng([num_rows, row_len])
    if form.in_int8 and not plain_scales:
        return integer_weights.random_integers(fmt, (num_rows, row_len), 0.1, draw)
    codes = draw.integers(0, 1 << form.bits, (num_rows, row_len), dtype=np.uint8)
    scales = _group_scales(form, num_rows, row_len, None if plain_scales else draw)
    minimums = _group_scales(form, num_rows, row_len, None if plain_scales else draw, minimum=True)
    if form.in_int8:
        minimums = GroupScales(-scales.coarse, minimums.fine)
    size = form.row_group_size(row_len)
    outliers = integer_weights.random_outliers(form, num_rows, row_len, draw) if form.outliers else None
    return WeightData(fmt, codes, scales, minimums if form.has_minimum else None, size, outliers)


def _group_scales(
    form: IntegerFormat,
    num_rows: int,
    row_len: int,
    draw: np.random.Generator | None,
    *,
    minimum: bool = False,
) -> GroupScales:
    groups = (num_rows, -(-row_len // form.row_group_size(row_len)))
    shape = (num_rows, -(-row_len // form.coarse_size)) if form.coarse_size else groups
    dtype = np.float32 if form.wide_scales else np.float16
    coarse, fine = np.ones(shape, dtype), np.ones(groups, np.uint8 if form.has_minimum else np.int8)
    if draw is not None:
        exponents = draw.integers(-12, 0, shape)
        coarse = np.ldexp(1.0 if form.wide_scales else draw.uniform(1, 2, shape), exponents).astype(dtype)
        coarse = -coarse if minimum else coarse
        least = 0 if form.has_minimum else -32
        fine = draw.integers(least, 64, groups).astype(fine.dtype)
    return GroupScales(coarse, fine if form.coarse_size else None)


def quantized_rows(x: Float32, group: int, most: int = 127) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Activations rounded for integer weights, as devices do: q, and the scale of each input."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % group))).reshape(len(x), -1, group)
    top = np.abs(padded).max(axis=2, keepdims=True)
    inverse = np.where(top > 0, np.float32(most) / np.where(top > 0, top, 1), 0).astype(np.float32)
    q = np.clip(np.rint(padded * inverse), -most, most).reshape(len(x), -1)[:, : x.shape[1]]
    scales = np.repeat((top / np.float32(most))[:, :, 0], group, axis=1)[:, : x.shape[1]]
    return q.astype(np.int64), scales.astype(np.float64)


def dequantized(weight: WeightData) -> NDArray[np.float64]:
    """The values of the weights, before any rounding."""
    form = INTEGER_FORMATS[weight.format]

    row_len = weight.data.shape[1]

    def spread(scales: GroupScales | None) -> NDArray[np.float64]:
        """Expand to one value per weight."""
        if scales is None:
            return np.zeros((1, 1))
        coarse = scales.coarse.astype(np.float64)
        if scales.fine is None:
            return np.repeat(coarse, weight.group_size, axis=1)[:, :row_len]
        fine = np.repeat(scales.fine.astype(np.float64), weight.group_size, axis=1)[:, :row_len]
        both: NDArray[np.float64] = fine * np.repeat(coarse, form.coarse_size, axis=1)[:, :row_len]
        return both

    return spread(weight.scales) * weight.integers() + spread(weight.minimums)


def middle_program(
    ops: Sequence[Op], width: int, formats: Mapping[str, str], group: KVGroup | None
) -> Program:
    """A program whose input and output are hidden states of ``width``."""
    parts = (
        Part("before", "ffn", 0, ()),
        Part("tested", "mixer", 0, tuple(ops)),
        Part("after", "ffn", 0, ()),
    )
    groups = () if group is None else (group,)
    plan = ModelPlan("test", width, VOCAB, CONTEXT, CONTEXT, groups, parts)
    return lower(plan, 1, 2, format_of=lambda _kind, ref: formats.get(ref.name, "f32"))


def head_program(op: Head, width: int, vocab: int, fmt: str = "f32") -> Program:
    parts = (Part("before", "ffn", 0, ()), Part("head", "head", None, (op,)))
    plan = ModelPlan("test", width, vocab, CONTEXT, CONTEXT, (), parts)
    return lower(plan, 1, 2, format_of=lambda _kind, _ref: fmt)


def open_stage(
    device: CpuDevice,
    program: Program,
    weights: Mapping[str, WeightData],
    *,
    rows: int = 300,
    blocks: int = 0,
    tickets: int = 2,
    kv_dtype: KVDtype = "f32",
    spans: bool = False,
) -> CpuStage:
    loaded = device.load(program, Weights(weights), lambda _done, _total: None)
    limits = StageLimits(rows, 16, rows, kv_dtype, tickets, spans=spans)
    return loaded.stage({group.id: blocks for group in program.groups}, limits)


def one_sequence(rows: int, start: int = 0, blocks: Sequence[int] | None = None) -> Step:
    """A step of one sequence; ``blocks`` belong to its only KV group, if there is one."""
    return Step(
        token_ids=np.zeros(rows, np.int32),
        positions=np.arange(start, start + rows, dtype=np.int32),
        row_offsets=np.array([0, rows], np.int32),
        block_tables=() if blocks is None else (np.array([blocks], np.int32),),
        copies=np.zeros((0, 3), np.int32),
    )


def run_rows(stage: CpuStage, x: Float32, step: Step | None = None) -> Float32:
    """Run a stage of a middle program, and return the hidden states."""
    ticket = stage.submit(step or one_sequence(len(x)), HostHidden(x), None)
    out = stage.hidden(ticket).host().copy()
    stage.release(ticket)
    return out


def linear(width: int, *, bias: bool = False) -> Linear:
    """A linear op with a square weight ``w``, and optionally a bias ``b``."""
    return Linear(
        HIDDEN,
        (HIDDEN,),
        (TensorRef("w", (width, width)),),
        (TensorRef("b", (width,)) if bias else None,),
    )


def attention(heads: int, kv_heads: int, head_dim: int, softcap: float | None = None) -> tuple[Op, ...]:
    """Attention whose queries are the hidden states; weights ``k`` and ``v`` make keys and values."""
    width, kv_width = heads * head_dim, kv_heads * head_dim
    refs = tuple(TensorRef(name, (kv_width, width)) for name in ("k", "v"))
    return (
        Linear(HIDDEN, ("k", "v"), refs, (None, None)),
        Attention(HIDDEN, "k", "v", HIDDEN, 0, 0, heads, kv_heads, head_dim, head_dim**-0.5, softcap),
    )


def select(
    rows: int,
    *,
    edits: Mapping[int, Sequence[tuple[int, float, float]]] | None = None,
    masked: Sequence[int] = (),
    temperature: float = 1.0,
    targets: Sequence[int] | None = None,
    raw_top: int = 0,
) -> Selection:
    """Select every row of a step; ``edits[n]`` are (id, factor, bias) of row ``n``."""
    per_row = [list((edits or {}).get(n, ())) for n in range(rows)]
    flat = [edit for row in per_row for edit in row]
    return Selection(
        rows=np.arange(rows, dtype=np.int32),
        edit_offsets=np.cumsum([0, *map(len, per_row)]).astype(np.int32),
        edit_ids=np.array([edit[0] for edit in flat], np.int32),
        edit_factors=np.array([edit[1] for edit in flat], np.float32),
        edit_biases=np.array([edit[2] for edit in flat], np.float32),
        masked=np.isin(np.arange(rows), masked),
        temperatures=np.full(rows, temperature, np.float32),
        targets=np.array(targets if targets is not None else [-1] * rows, np.int32),
        raw_top=raw_top,
    )
