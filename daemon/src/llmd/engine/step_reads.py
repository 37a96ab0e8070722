"""The bytes that a step in decode reads: weights, and keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from llmd.api.expert_ops import Experts
from llmd.api.messages import ExpertReads
from llmd.api.ops import TABLE_OPS
from llmd.api.plan import KVGroup
from llmd.api.program import Program, SlottedOp


def dense_reads(program: Program) -> int:
    """Return the bytes of the weights that every step reads: all but experts.

    Of tables, a step reads single rows, which are not counted.
    """
    ops = [one for one in program.ops if one.op.kind not in TABLE_OPS and not isinstance(one.op, Experts)]
    return _num_bytes(program, ops)


def expert_reads(program: Program) -> tuple[ExpertReads, ...]:
    """Return what steps read of the experts, which depends on their number of rows."""
    alike: dict[tuple[int, int], list[SlottedOp]] = {}
    for one in program.ops:
        if isinstance(one.op, Experts):
            alike.setdefault((one.op.num_experts, one.op.top_k), []).append(one)
    return tuple(ExpertReads(_num_bytes(program, ops), *use) for use, ops in alike.items())


def _num_bytes(program: Program, ops: Sequence[SlottedOp]) -> int:
    """Return the bytes of the weights of some ops; ops may share weights."""
    indices = {index for one in ops for index in one.weights if index is not None}
    return sum(program.weights[index].num_bytes for index in indices)


class KVReads(msgspec.Struct, frozen=True):
    """What one row reads of the KV cache, over all layers."""

    per_token: tuple[tuple[int, int | None], ...]
    """Bytes for each token, and the most tokens (None: all), of each group with blocks."""
    state_bytes: int
    """Bytes of the states, whatever the length."""

    @classmethod
    def of(cls, groups: Sequence[KVGroup], block_bytes: Callable[[int], int]) -> Self:
        """``block_bytes`` returns the bytes of a block, or slot, of a group."""
        return cls(
            tuple(
                (block_bytes(group.id) // group.block_tokens, group.window)
                for group in groups
                if group.kind != "state"
            ),
            sum(block_bytes(group.id) for group in groups if group.kind == "state"),
        )

    def of_rows(self, lengths: Sequence[int]) -> int:
        """Return the bytes that rows at these lengths read."""
        num_bytes = self.state_bytes * len(lengths)
        for token_bytes, window in self.per_token:
            spans = lengths if window is None else [min(length, window) for length in lengths]
            num_bytes += token_bytes * sum(spans)
        return num_bytes
