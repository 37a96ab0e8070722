"""Map the tensors of one form of a model to those of another by comparing the plans of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.ops import Linear, Norm, Op, Rope
from llmd.api.plan import ModelPlan, Part
from llmd.api.tensors import TensorRef


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


class MappedTensor(msgspec.Struct, frozen=True):
    """A tensor of the source and its place in the target."""

    name: str
    """Name in the target."""
    ref: TensorRef
    """The tensor of the source."""
    ops: frozenset[str]
    """Kinds of the ops that use it."""
    shift: float = 0.0
    """Added to each element."""
    reorder: Reorder | None = None


def map_tensors(source: ModelPlan, target: ModelPlan) -> Mapping[str, MappedTensor]:
    """Return the tensors of the target by name, in order of first use.

    The plans may differ only in tensor names, offsets of norm weights, and the order of RoPE pairs.
    """
    found: dict[str, MappedTensor] = {}
    for part, new_part in zip(source.parts, target.parts, strict=True):
        for move in _of_part(part, new_part):
            seen = found.get(move.name)
            ops = move.ops if seen is None else move.ops | seen.ops
            found[move.name] = msgspec.structs.replace(move, ops=ops)
    return found


def _of_part(part: Part, new_part: Part) -> Iterator[MappedTensor]:
    pairs = list(zip(part.ops, new_part.ops, strict=True))
    reorders = {
        op.x: _reorder(op, new) for op, new in pairs if isinstance(op, Rope) and isinstance(new, Rope)
    }
    for op, new in pairs:
        values = _values(op)
        shift = op.offset - new.offset if isinstance(op, Norm) and isinstance(new, Norm) else 0.0
        for value, ref, new_ref in zip(values, op.tensors, new.tensors, strict=True):
            if ref is not None and new_ref is not None:
                whole = TensorRef(ref.name, ref.shape)
                yield MappedTensor(new_ref.name, whole, frozenset({op.kind}), shift, reorders.get(value))


def _values(op: Op) -> tuple[str, ...]:
    """Return the output value of each tensor of a linear op; empty strings for other ops."""
    if isinstance(op, Linear):
        return tuple(out for out in op.outs for _ in ("weight", "bias"))
    return ("",) * len(op.tensors)


def _reorder(op: Rope, new: Rope) -> Reorder | None:
    if op.interleaved == new.interleaved:
        return None
    return Reorder(op.heads, op.head_dim, op.table.rotary_dim, new.interleaved)
