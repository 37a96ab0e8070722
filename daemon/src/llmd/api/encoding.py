"""A program as flat arrays of numbers, for native code.

``records`` is int64. For each instruction it contains::

    number of ops, then for each op:
        code (index in `OP_KINDS`),
        number of inputs, slots…, number of outputs, slots…,
        number of weights, index or -1…,
        number of integers, values…, number of floats, index into ``floats``…

Integers and floats of each op, in order::

    embed      ints first column                                  floats scale
    norm       ints method (0 rms, 1 layer), heads, own_weights   floats eps, offset
    linear     ints -                                             floats -
    rope       ints heads, head_dim, rope index, interleaved,
                    stride                                        floats -
    attention  ints group, kv_layer, heads, kv_heads, head_dim,
                    window (0 none), has chosen positions,
                    stride                                        floats scale, softcap (0 none)
    glu        ints activation (index in `ACTIVATIONS`)           floats threshold, limit (0 none)
    add        ints -                                             floats scale
    head       ints -                                             floats scale, softcap (0 none)
    embed_position, embed_token_type   ints -                     floats -
    encoder_attention                  ints heads, head_dim       floats scale
    activate   ints activation (index in `ACTIVATIONS`)           floats -
    recurrence ints group, kv_layer                               floats -
    router     ints top_k, score (index in `SCORES`), normalized,
                    groups, top_groups, group score (index in
                    `GROUP_SCORES`)                               floats factor, scale
    experts    ints activation (index in `ACTIVATIONS`), top_k    floats limit (0 none), offset
    gate       ints -                                             floats -
    gated_delta  ints group, kv_layer, heads, key_heads, key_dim,
                    value_dim, taps, decay for each element, tiled,
                    rates (index in `RATES`)                      floats -
    state_space  ints group, kv_layer, heads, groups, state_size,
                    head_dim, taps, rates (index in `RATES`)      floats least_time, most_time (0 none)
    head_linear  ints -                                           floats -
    join       ints heads                                         floats -
    multiply   ints -                                             floats -
    token_shift  ints group, kv_layer, offset                     floats -
    generalized_delta  ints group, kv_layer, heads, head_dim,
                    offset                                        floats -
    adapt      ints adapters                                      floats scale for each pair of weights
    indexer    ints group, kv_layer, heads, head_dim, top_k,
                    stride                                        floats -
    compress   ints group, kv_layer, dim, stride, overlap         floats -
    merge_attention  ints heads                                   floats -
    stream_weights  ints streams, rounds                          floats eps, floor
    collapse_streams, mix_streams  ints streams                   floats -

``instructions`` is int64. For each instruction it contains::

    part, number of slots that the instruction must write, slots…

Loops that run op by op do not need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.activations import ACTIVATIONS
from llmd.api.adapter_ops import Adapt
from llmd.api.compressed_ops import Compress, MergeAttention
from llmd.api.expert_ops import Experts, GroupScore, Router, Score
from llmd.api.latent_ops import Indexer, Join
from llmd.api.ops import (
    OP_KINDS,
    Activate,
    Add,
    Attention,
    Embed,
    EncoderAttention,
    Glu,
    Head,
    KVOp,
    Norm,
    Op,
    Rope,
)
from llmd.api.program import Program, SlottedOp
from llmd.api.state_ops import GatedDelta, Rates, StateSpace
from llmd.api.stream_ops import CollapseStreams, MixStreams, StreamWeights
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift

NORM_METHODS = ("rms", "layer")
"""Norm methods by code."""
SCORES: tuple[Score, ...] = get_args(Score)
"""Scores of routers by code."""
GROUP_SCORES: tuple[GroupScore, ...] = get_args(GroupScore)
"""Scores of groups of experts by code."""
RATES: tuple[Rates, ...] = get_args(Rates)
"""Forms of rates by code."""


class EncodedProgram(msgspec.Struct, frozen=True):
    """The instructions of a program in the layout above."""

    records: NDArray[np.int64]
    """``[n]``."""
    floats: NDArray[np.float64]
    """``[m]``: parameters that the records refer to."""
    instructions: NDArray[np.int64]
    """``[k]``."""


def encode(program: Program) -> EncodedProgram:
    """Encode the instructions of a program in the layout of this module."""
    records: list[int] = []
    floats: list[float] = []
    instructions: list[int] = []
    for instruction in program.instructions:
        instructions.append(instruction.part)
        _append_list(instructions, instruction.outputs)
        records.append(len(instruction.ops))
        for slotted in instruction.ops:
            _append_op(program, slotted, records, floats)
    return EncodedProgram(
        np.array(records, np.int64), np.array(floats, np.float64), np.array(instructions, np.int64)
    )


def _append_op(program: Program, slotted: SlottedOp, records: list[int], floats: list[float]) -> None:
    op = slotted.op
    records.append(OP_KINDS.index(op.kind))
    _append_list(records, slotted.inputs)
    _append_list(records, slotted.outputs)
    _append_list(records, [-1 if w is None else w for w in slotted.weights])
    _append_list(records, _integers(program, slotted))
    values = _floats(op)
    _append_list(records, range(len(floats), len(floats) + len(values)))
    floats.extend(values)


def _append_list(records: list[int], values: Sequence[int]) -> None:
    records.append(len(values))
    records.extend(values)


def _integers(program: Program, slotted: SlottedOp) -> list[int]:
    if isinstance(slotted.op, KVOp):
        return [slotted.op.group, _known(slotted.kv_layer), *_kv_integers(program, slotted.op)]
    return _own_integers(slotted)


def _own_integers(slotted: SlottedOp) -> list[int]:
    values: list[int] = []
    match slotted.op:
        case Embed() as op:
            values = [op.column_range[0]]
        case Norm(method=method, heads=heads, own_weights=own):
            values = [NORM_METHODS.index(method), heads, int(own)]
        case Rope(heads=heads, head_dim=head_dim, interleaved=interleaved, stride=stride):
            values = [heads, head_dim, _known(slotted.rope), int(interleaved), stride]
        case EncoderAttention(heads=heads, head_dim=head_dim):
            values = [heads, head_dim]
        case (
            Join(heads=count)
            | Adapt(num_adapters=count)
            | MergeAttention(heads=count)
            | CollapseStreams(streams=count)
            | MixStreams(streams=count)
        ):
            values = [count]
        case StreamWeights(streams=streams, rounds=rounds):
            values = [streams, rounds]
        case Glu(activation=activation) | Activate(activation=activation):
            values = [ACTIVATIONS.index(activation)]
        case Router() as op:
            chosen = [op.groups, op.top_groups, GROUP_SCORES.index(op.group_score)]
            values = [op.top_k, SCORES.index(op.score), int(op.normalized), *chosen]
        case Experts(activation=activation, top_k=top_k):
            values = [ACTIVATIONS.index(activation), top_k]
    return values


def _kv_integers(program: Program, op: KVOp) -> list[int]:
    values: list[int] = []
    stride = program.groups[op.group].stride
    match op:
        case Attention():
            window = program.groups[op.group].window or 0
            values = [op.heads, op.kv_heads, op.head_dim, window, int(op.chosen is not None), stride]
        case GatedDelta():
            sizes = [op.heads, op.key_heads, op.key_dim, op.value_dim, op.taps]
            values = [*sizes, int(op.decays_elements), int(op.tiled), RATES.index(op.rates_as)]
        case StateSpace():
            sizes = [op.heads, op.groups, op.state_size, op.head_dim, op.taps]
            values = [*sizes, RATES.index(op.rates_as)]
        case TokenShift():
            values = [op.offset]
        case GeneralizedDelta():
            values = [op.heads, op.head_dim, op.offset]
        case Indexer():
            values = [op.heads, op.head_dim, op.top_k, stride]
        case Compress():
            values = [op.dim, op.stride, int(op.overlap)]
    return values


def _floats(op: Op) -> list[float]:
    values: list[float] = []
    match op:
        case Embed(scale=scale) | Add(scale=scale) | EncoderAttention(scale=scale):
            values = [scale]
        case Norm(eps=eps, offset=offset):
            values = [eps, offset]
        case Attention(scale=scale, softcap=softcap) | Head(scale=scale, softcap=softcap):
            values = [scale, softcap or 0.0]
        case Glu(threshold=threshold, limit=limit):
            values = [threshold, limit or 0.0]
        case StreamWeights(eps=eps, floor=floor):
            values = [eps, floor]
        case Router(factor=factor, scale=scale):
            values = [factor, scale]
        case Experts(limit=limit, offset=offset):
            values = [limit or 0.0, offset]
        case StateSpace(least_time=least, most_time=most):
            values = [least, most or 0.0]
        case Adapt(scales=scales):
            values = [*scales]
    return values


def _known(index: int | None) -> int:
    assert index is not None, "lowering numbers every rope table and KV layer"
    return index
