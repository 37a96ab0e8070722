"""Attention on the simulated device and in the reference, over the same steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api.device import StageLimits
from llmd.api.kv import KVDtype
from llmd.api.ops import Attention, Rope, RopeTable
from llmd.api.plan import KVGroup, KVKind
from llmd.api.program import Instruction, Precision, Program, SlottedOp
from llmd.api.step import Int32
from llmd.api.tensors import TensorRef
from llmd.builtin.reference import numerics
from llmd.builtin.reference.kv import KVPool, PagedKeys
from llmd_backend_cuda.attention_plan import AttentionScratch, plan_attention
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.kv_memory import KVMemory
from llmd_backend_cuda.ops.attention import (
    AttentionMemory,
    attention_launches,
    rotated_attention_launches,
    shape_of,
)
from llmd_backend_cuda.runtime import Launch, Memory
from tests.cuda.one_instruction import upload
from tests.cuda.simt.runtime import SimtRuntime

Float32 = NDArray[np.float32]
Rows = Sequence[tuple[int, int, int]]
"""For each sequence of a step: its number, the first position and the position after the last."""


class Bench:
    """One attention op with its KV memory, and the keys, values and queries of some sequences."""

    def __init__(
        self,
        op: Attention,
        *,
        window: int | None = None,
        kv_dtype: KVDtype = "f16",
        context_len: int = 400,
        sequences: int = 2,
        max_rows: int = 64,
        ropes: tuple[Rope, Rope] | None = None,
        layers: int = 1,
        order: str | int = 1,
        kept: tuple[int, ...] = (5,),
        stride: int = 1,
    ) -> None:
        """``kept`` are the slots that are read later: 3 has rotated queries, 4 rotated keys, 5 the result.
        Slot 6 has the sums of attention.
        """
        self.op, self.ropes, self.context_len, self.kept = op, ropes, context_len, kept
        self.runtime = SimtRuntime(order=order)
        kind: KVKind = "latent" if op.value_dim < op.head_dim or stride > 1 else "paged"
        of_heads = (op.kv_heads, op.head_dim, tuple(range(layers)))
        self.group = KVGroup(0, window, *of_heads, kind=kind, value_dim=op.value_dim, stride=stride)
        self.limits = StageLimits(max_rows, sequences, max_rows, kv_dtype)
        self.width = -(-context_len // self.group.block_tokens)
        num_blocks = sequences * self.width + 1
        self.kv = KVMemory(self.runtime, self.group, num_blocks, kv_dtype)
        self.shape = shape_of(op, self.group)
        self.scratch = AttentionScratch(self.runtime, [self.shape], self.limits, context_len)
        self.plan = np.full(self.shape.plan_ints(self.limits, context_len), -1, np.int32)
        random = np.random.default_rng(7)
        self.tables = random.permutation(num_blocks - 1).reshape(sequences, self.width).astype(np.int32)
        widths = (op.heads, op.kv_heads, op.kv_heads)
        self.qkv = [
            random.standard_normal((sequences, context_len, heads * op.head_dim)).astype(np.float32)
            for heads in widths
        ]
        self.sinks = None if op.sinks is None else random.standard_normal(op.heads).astype(np.float32) + 2
        self._inputs: dict[str, Memory] = {}
        self._allocate()

    def run(self, step: Rows, *, padding: int = 0) -> Float32:
        """Run a step with ``padding`` rows of padding; return ``[rows, heads * head_dim]``."""
        positions = np.concatenate([np.arange(first, end, dtype=np.int32) for _, first, end in step])
        sizes = [end - first for _, first, end in step]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        rows = len(positions)
        self._put("counts", np.array([rows, len(step), 0, 0], np.int32))
        self._put("positions", positions)
        self._put("sequences", np.repeat(np.arange(len(step), dtype=np.int32), sizes))
        self._put("row_offsets", offsets)
        table = np.stack([self._table(*one) for one in step])[
            :, : positions.max() // self.group.block_tokens + 1
        ]
        self._put("block_table", np.array([4, table.shape[1], -1, -1, *table.reshape(-1)], np.int32))
        self.plan[:] = 1 << 30
        places = self.shape.num_places(self.limits, self.context_len)
        length = plan_attention(self.shape, places, offsets, positions, self.plan)
        assert length <= len(self.plan)
        self._put("plan", self.plan[:length])
        for slot, values in enumerate(self.qkv):
            self._upload(self.slots[slot], np.concatenate([values[s, first:end] for s, first, end in step]))
        for launch in self.launches(rows + padding):
            self.runtime.launch(launch)
        return self.read(5, rows, self.op.heads * self.op.value_dim)

    def read(self, slot: int, rows: int, width: int) -> Float32:
        """Return the first rows of a slot."""
        found = np.empty((rows, width), np.float32)
        self.runtime.download(found, self.slots[slot], 0)
        return found

    def expected(self, step: Rows, precision: Precision = "f16") -> Float32:
        """Return what the reference computes, in this precision."""
        return self.expected_both(step, precision)[0]

    def expected_both(self, step: Rows, precision: Precision = "f16") -> tuple[Float32, Float32]:
        """Return what the reference computes in this precision, and the sums of attention."""
        op = self.op
        pool = KVPool(self.group, int(self.tables.max()) + 1, self.limits.kv_dtype)
        found, sums = [], []
        for sequence, first, end in step:
            table, positions = self.tables[sequence], np.arange(end, dtype=np.int32)
            q, k, v = (values[sequence, :end].reshape(end, -1, op.head_dim) for values in self.qkv)
            if self.ropes:
                q, k = (
                    numerics.rotate(x, positions, rope.table, interleaved=rope.interleaved)
                    for x, rope in zip((q, k), self.ropes, strict=True)
                )
            paged = PagedKeys(pool, 0, table, positions)
            paged.write(k, v)
            keys, values = paged.read(0)
            for position in range(first, end):
                seen_from = 0 if self.group.window is None else max(0, position - self.group.window + 1)
                seen = slice(seen_from, paged.seen(position))
                row = q[position].astype(np.float64)
                sinks = None if self.sinks is None else self.sinks.astype(np.float64)
                options = (op.scale, op.softcap, precision, sinks)
                found.append(numerics.attend(row, keys[seen], values[seen], *options).reshape(-1))
                sums.append(numerics.attention_sums(row, keys[seen], *options))
        return np.stack(found).astype(np.float32), np.stack(sums).astype(np.float32)

    def _table(self, sequence: int, first: int, end: int) -> Int32:
        """Return the block table of a sequence, with -1 for what the step does not need."""
        table: Int32 = self.tables[sequence].copy()
        window = self.group.window
        seen_from = 0 if window is None else max(0, first - window + 1)
        table[: seen_from // self.group.block_tokens] = -1
        table[(end - 1) // self.group.block_tokens + 1 :] = -1
        return table

    def _allocate(self) -> None:
        rows, op = self.limits.max_rows, self.op
        sizes = {
            "counts": 4, "positions": rows, "sequences": rows, "row_offsets": self.limits.max_sequences + 1,
            "block_table": 4 + self.limits.max_sequences * self.width, "plan": len(self.plan),
        }  # fmt: skip
        self._inputs = {name: self.runtime.allocate(4 * count) for name, count in sizes.items()}
        heads = (op.heads, op.kv_heads, op.kv_heads, op.heads, op.kv_heads, op.heads)
        self.slots = [self.runtime.allocate(4 * rows * count * op.head_dim) for count in heads]
        self.slots.append(self.runtime.allocate(4 * rows * op.heads))
        step = StepArgs(
            **{
                name: self._inputs[name].pointer
                for name in ("counts", "positions", "sequences", "row_offsets")
            }
        )
        tables = [np.array(rope.table.inv_freq) for rope in self.ropes or ()]
        ropes = [self.runtime.allocate(max(table.nbytes, 8)) for table in tables]
        for memory, table in zip(ropes, tables, strict=True):
            self.runtime.upload(memory, 0, table)
        vectors = [] if self.sinks is None else [upload(self.runtime, self.sinks)]
        self.context = Context(
            self.runtime, _program(self.context_len), self.limits, step, self.slots, vectors, ropes
        )

    def _memory(self) -> AttentionMemory:
        table, plan = (self._inputs[name].pointer for name in ("block_table", "plan"))
        most_items = self.shape.most_items(self.limits, self.context_len)
        return AttentionMemory(self.kv, table, plan, most_items, self.scratch, self.shape)

    def launches(self, rows: int) -> list[Launch]:
        """Return the launches of a step of at most ``rows`` rows."""
        layer, sinks = len(self.group.layers) - 1, (None if self.sinks is None else 0,)
        if not self.ropes:
            inputs = (0,) if self.op.k is None else (0, 1, 2)
            outputs = (5,) if self.op.sums is None else (5, 6)
            slotted = SlottedOp(self.op, inputs, outputs, sinks, kv_layer=layer)
            return attention_launches(self.context, slotted, rows, self._memory())
        ops = (
            SlottedOp(self.ropes[0], (0,), (3,), rope=0),
            SlottedOp(self.ropes[1], (1,), (4,), rope=1),
            SlottedOp(self.op, (3, 4, 2), (5,), sinks, kv_layer=layer),
        )
        return rotated_attention_launches(self.context, Instruction(ops, 0, self.kept), rows, self._memory())

    def _put(self, name: str, array: NDArray[np.generic]) -> None:
        self._upload(self._inputs[name], array)

    def _upload(self, memory: Memory, array: NDArray[np.generic]) -> None:
        """Upload an array; what follows it in memory is not a number."""
        contents = np.full(memory.num_bytes, 0xFF, np.uint8)
        contents[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.runtime.upload(memory, 0, contents)


def _program(context_len: int) -> Program:
    return Program(0, 1, 0, 0, context_len, (), (), (), (), (), None, None)


def nmse(found: Float32, expected: Float32) -> float:
    """Return the squared error over the squared reference."""
    wide = expected.astype(np.float64)
    return float(np.sum((found - wide) ** 2) / np.sum(wide**2))


def attention(
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    has_sinks: bool = False,
    value_dim: int = 0,
) -> Attention:
    """Return an attention op."""
    return Attention(
        "q",
        "k",
        "v",
        "out",
        0,
        0,
        heads,
        kv_heads,
        head_dim,
        head_dim**-0.5 if scale is None else scale,
        softcap,
        TensorRef("sinks", (heads,)) if has_sinks else None,
        value_dim,
    )


def rope(heads: int, head_dim: int, pairs: int, *, interleaved: bool = False, factor: float = 1.0) -> Rope:
    """Return a rope op."""
    table = RopeTable(tuple(10000.0 ** (-i / max(pairs, 1)) for i in range(pairs)), factor)
    return Rope("x", "y", heads, head_dim, table, interleaved)
