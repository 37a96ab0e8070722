"""The bytes that a step in decode reads: weights, and keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from llmd.api.expert_ops import Experts
from llmd.api.ops import TABLE_OPS
from llmd.api.plan import KVGroup
from llmd.api.program import Program
from llmd.api.step import BLOCK_LEN


def weight_reads(program: Program) -> int:
    """Return the bytes of the weights that a step of one row reads: of a mixture, those of the row's experts.

    Of tables, a step reads single rows, which are not counted.
    """
    shares: dict[int, float] = {}
    for slotted in (slotted for instruction in program.instructions for slotted in instruction.ops):
        op = slotted.op
        if op.kind not in TABLE_OPS:
            share = op.top_k / op.num_experts if isinstance(op, Experts) else 1.0
            shares |= {index: share for index in slotted.weights if index is not None}
    return sum(round(share * program.weights[index].num_bytes) for index, share in shares.items())


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
                (block_bytes(group.id) // BLOCK_LEN, group.window)
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
