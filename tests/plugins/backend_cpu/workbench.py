"""One op on one stage, with arrays in and arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    HIDDEN,
    Attention,
    Head,
    HostHidden,
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
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.stage import CpuStage

VOCAB = 300
CONTEXT = 4096


class Weights:
    """A `TensorSource` of given weights."""

    def __init__(self, weights: Mapping[str, WeightData]) -> None:
        self._weights = weights

    def read(self, weight: Weight) -> WeightData:
        return self._weights[weight.ref.name]


def random_rows(rows: int, width: int, seed: int = 0) -> Float32:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def plain(values: NDArray[np.generic]) -> WeightData:
    return WeightData("f32", np.ascontiguousarray(values, np.float32))


def middle_program(
    ops: Sequence[Op], width: int, formats: Mapping[str, str], group: KVGroup | None
) -> Program:
    """A program that takes and leaves hidden states of ``width``."""
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
) -> CpuStage:
    parts = device.load(program, Weights(weights), lambda _done, _total: None)
    limits = StageLimits(rows, 16, rows, kv_dtype, tickets)
    return parts.stage({group.id: blocks for group in program.groups}, limits)


def one_sequence(rows: int, start: int = 0, blocks: Sequence[int] | None = None) -> Step:
    """A step of one sequence; ``blocks`` are those of its only KV group, if it has one."""
    return Step(
        token_ids=np.zeros(rows, np.int32),
        positions=np.arange(start, start + rows, dtype=np.int32),
        row_offsets=np.array([0, rows], np.int32),
        block_tables=() if blocks is None else (np.array([blocks], np.int32),),
        copies=np.zeros((0, 3), np.int32),
    )


def run_rows(stage: CpuStage, x: Float32, step: Step | None = None) -> Float32:
    """Hidden states after a stage of a middle program."""
    ticket = stage.submit(step or one_sequence(len(x)), HostHidden(x), None)
    out = stage.hidden(ticket).host().copy()
    stage.release(ticket)
    return out


def linear(width: int, *, bias: bool = False) -> Linear:
    """One square weight called ``w``, with a bias ``b`` if wanted."""
    return Linear(
        HIDDEN,
        (HIDDEN,),
        (TensorRef("w", (width, width)),),
        (TensorRef("b", (width,)) if bias else None,),
    )


def attention(heads: int, kv_heads: int, head_dim: int, softcap: float | None = None) -> tuple[Op, ...]:
    """Attention whose queries are the hidden states; keys and values are weights ``k`` and ``v`` of them."""
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
    """Every row of a step; ``edits[n]`` are (id, factor, bias) of row ``n``."""
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
