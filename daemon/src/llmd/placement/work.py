"""What steps ask of the device that runs some parts of a model, counted from its program."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from llmd.api.expert_ops import Experts, used_share
from llmd.api.kv import KVDtype, kv_block_bytes
from llmd.api.latent_ops import Indexer
from llmd.api.ops import TABLE_OPS, Attention
from llmd.api.program import Program, SlottedOp
from llmd.api.tensors import Format, Weight


class Weights(msgspec.Struct, frozen=True):
    """Weights of one format, which a step reads once for all its rows."""

    num_bytes: int
    elements: int


class ExpertWeights(msgspec.Struct, frozen=True):
    """Weights of experts, in one format. A step reads those of the experts that its rows use."""

    format: Format
    whole: Weights
    """Of all experts."""
    num_experts: int
    top_k: int
    """Experts that a row uses."""

    def share(self, rows: int) -> float:
        """Return the expected share of the experts that some row uses."""
        return used_share(self.num_experts, self.top_k, rows)


class Span(msgspec.Struct, frozen=True):
    """What the attention of a row does for each position, over all layers of a KV group: on average, if a
    vector stands for several.
    """

    window: int | None
    """The most positions, in a window or chosen; None: all."""
    num_bytes: int
    """Bytes of the key and the value."""
    flops: int
    """Operations; a multiply-add counts as two."""

    def positions(self, length: int) -> int:
        """Return the positions that a row after ``length`` tokens reads."""
        return length if self.window is None else min(length, self.window)


class Work(msgspec.Struct, frozen=True):
    """What steps of some parts do."""

    num_parts: int
    """Parts of layers."""
    layers: Mapping[Format, Weights]
    """Weights that all rows are multiplied by."""
    head: Mapping[Format, Weights]
    """Weights that output rows alone are multiplied by."""
    spans: tuple[Span, ...]
    """Attention, by KV group."""
    state_bytes: int
    """States that a sequence reads and writes, whatever its length."""
    experts: tuple[ExpertWeights, ...] = ()
    """Experts, by format, number and use."""


def work_of(program: Program, kv_dtype: KVDtype) -> Work:
    """Count the work of a program, with keys and values of a type."""
    ops = [(instruction.part, one) for instruction in program.instructions for one in instruction.ops]
    in_layers = [(part, one) for part, one in ops if one.op.kind not in {*TABLE_OPS, "head"}]
    dense = [one for _, one in in_layers if not isinstance(one.op, Experts)]
    heads = {part for part, one in ops if one.op.kind == "head"}
    states = [group for group in program.groups if group.kind == "state"]
    flops: dict[int, int] = defaultdict(int)
    reads: dict[int, int] = defaultdict(int)  # a layer's keys may be read by others too
    windows = {group.id: group.window for group in program.groups}
    for _, one in in_layers:
        if isinstance(one.op, Attention):
            flops[one.op.group] += 2 * one.op.heads * (one.op.head_dim + one.op.value_dim)
            reads[one.op.group] += 1
            if one.op.chosen is not None:
                stride = program.groups[one.op.group].stride
                windows[one.op.group] = stride * program.slot_widths[one.inputs[-1]]
        elif isinstance(one.op, Indexer):
            flops[one.op.group] += 2 * one.op.heads * one.op.head_dim
            reads[one.op.group] += 1
    return Work(
        num_parts=len({part for part, _ in in_layers} - heads),
        layers=_weights(program, dense),
        head=_weights(program, [one for _, one in ops if one.op.kind == "head"]),
        spans=tuple(
            Span(
                windows[group.id],
                kv_block_bytes(group, kv_dtype) // group.block_tokens * reads[group.id] // len(group.layers),
                flops[group.id] // group.stride,
            )
            for group in program.groups
            if group.kind != "state" and group.layers
        ),
        state_bytes=sum(2 * kv_block_bytes(group, kv_dtype) for group in states),
        experts=tuple(_experts(program, [one for _, one in in_layers if isinstance(one.op, Experts)])),
    )


def _experts(program: Program, ops: Sequence[SlottedOp]) -> Iterator[ExpertWeights]:
    alike: dict[tuple[int, int], list[SlottedOp]] = defaultdict(list)
    for one in ops:
        assert isinstance(one.op, Experts)
        alike[one.op.num_experts, one.op.top_k].append(one)
    for (num_experts, top_k), some in alike.items():
        for name, whole in _weights(program, some).items():
            yield ExpertWeights(name, whole, num_experts, top_k)


def _weights(program: Program, ops: Sequence[SlottedOp]) -> dict[Format, Weights]:
    indices = {index for one in ops for index in one.weights if index is not None}
    found: dict[Format, list[Weight]] = defaultdict(list)
    for index in sorted(indices):
        found[program.weights[index].format].append(program.weights[index])
    return {
        name: Weights(
            sum(weight.num_bytes for weight in weights), sum(math.prod(w.ref.view_shape) for w in weights)
        )
        for name, weights in found.items()
    }
