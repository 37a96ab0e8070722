"""Find the rows and columns of matrices that have another order in the other form of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.ops import Glu, Linear, Op, Rope
from llmd.api.state_ops import GatedDelta

Pair = tuple[Op, Op]
"""An op of the source, and that of the target."""


class Reorder(msgspec.Struct, frozen=True):
    """A permutation of the rows of queries or keys for the other order of RoPE pairs."""

    heads: int
    head_dim: int
    rotary_dim: int
    interleaves: bool
    """True: elements half of ``rotary_dim`` apart become neighbours. False: the reverse."""

    def order(self) -> NDArray[np.intp]:
        """Return the old row for each new row."""
        pairs = np.arange(self.rotary_dim).reshape(2, -1).T.reshape(-1)
        rotated = pairs if self.interleaves else np.argsort(pairs)
        head = np.concatenate([rotated, np.arange(self.rotary_dim, self.head_dim)])
        rows: NDArray[np.intp] = np.arange(self.heads)[:, None] * self.head_dim + head
        return rows.reshape(-1)


class HeadOrder(msgspec.Struct, frozen=True):
    """A permutation of the heads of values of linear attention: see `GatedDelta.tiled`."""

    heads: int
    key_heads: int
    dim: int
    """Elements of a head."""
    tiles: bool
    """True: heads that share a key head are no longer neighbours. False: they become neighbours."""

    def order(self) -> NDArray[np.intp]:
        """Return the old element for each new one."""
        runs = (self.key_heads, self.heads // self.key_heads)
        old = runs if self.tiles else runs[::-1]
        return np.arange(self.heads * self.dim).reshape(*old, self.dim).swapaxes(0, 1).reshape(-1)


Order = Reorder | HeadOrder


class Orders(msgspec.Struct, frozen=True):
    """The orders in a part of a plan that differ."""

    outputs: Mapping[str, Order]
    """Of the elements of values that linear ops write."""
    inputs: Mapping[str, Order]
    """Of the elements of values that linear ops read."""
    fields: Mapping[str, Order]
    """Of the rows of tensors of the op that keeps states, by field."""

    def of_tensors(self, op: Op) -> Sequence[tuple[Order | None, Order | None]]:
        """Return the orders of the rows and of the columns of each tensor of an op."""
        if isinstance(op, Linear):
            columns = self.inputs.get(op.x)
            rows = [self.outputs.get(out) for out in op.outs]
            return [pair for one in rows for pair in ((one, columns), (one, None))]
        if isinstance(op, GatedDelta):
            return [(self.fields.get(field), None) for field in op.tensor_fields]
        return [(None, None)] * len(op.tensors)


def find_orders(pairs: Sequence[Pair]) -> Orders:
    """Compare the ops of a part of two plans."""
    outputs: dict[str, Order] = {}
    for op, new in pairs:
        if isinstance(op, Rope) and isinstance(new, Rope) and op.interleaved != new.interleaved:
            outputs[op.x] = Reorder(op.heads, op.head_dim, op.table.rotary_dim, new.interleaved)
        if isinstance(op, GatedDelta) and isinstance(new, GatedDelta) and op.tiled != new.tiled:
            return _of_delta(op, [op for op, _ in pairs], tiles=new.tiled)
    return Orders(outputs, {}, {})


def _of_delta(delta: GatedDelta, ops: Sequence[Op], *, tiles: bool) -> Orders:
    def of(dim: int) -> HeadOrder:
        return HeadOrder(delta.heads, delta.key_heads, dim, tiles)

    values, decays, numbers = of(delta.value_dim), of(delta.bias.shape[-1] // delta.heads), of(1)
    gates = list(_gates(delta, ops))
    return Orders(
        {delta.v: values, delta.decay: decays, delta.beta: numbers, **{op.gate: values for op in gates}},
        {op.out: values for op in gates},
        {"v_taps": values, "rates": numbers, "bias": decays},
    )


def _gates(delta: GatedDelta, ops: Sequence[Op]) -> Iterator[Glu]:
    """Yield the ops that gate the values of a layer."""
    return (op for op in ops if isinstance(op, Glu) and op.up == delta.out)
