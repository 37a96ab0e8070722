"""What becomes of each tensor on its way from one form of a model to another: two plans of one model, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.ops import Linear, Norm, Op, Rope
from llmd.api.plan import ModelPlan, Part
from llmd.api.tensors import TensorRef


class Reorder(msgspec.Struct, frozen=True):
    """Rows of queries or keys, put into the order of the elements that are rotated together in each head.

    ``interleaves``: those half a rotated part apart become neighbours; otherwise the other way.
    """

    heads: int
    head_dim: int
    rotary_dim: int
    interleaves: bool

    def order(self) -> NDArray[np.intp]:
        """For each new row the old one."""
        pairs = np.arange(self.rotary_dim).reshape(2, -1).T.reshape(-1)
        rotated = pairs if self.interleaves else np.argsort(pairs)
        head = np.concatenate([rotated, np.arange(self.rotary_dim, self.head_dim)])
        rows: NDArray[np.intp] = np.arange(self.heads)[:, None] * self.head_dim + head
        return rows.reshape(-1)


class MappedTensor(msgspec.Struct, frozen=True):
    """A tensor ``ref`` of the source, and its ``name`` in the target; ``ops`` are the kinds of ops that use it.

    ``shift`` is added to each element.
    """

    name: str
    ref: TensorRef
    ops: frozenset[str]
    shift: float = 0.0
    reorder: Reorder | None = None


def map_tensors(source: ModelPlan, target: ModelPlan) -> Mapping[str, MappedTensor]:
    """The tensors of the target by name, in order of first use.

    The plans are equal but for names, what norms leave to be added, and which elements of a head are rotated together.
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
    """The value that each tensor of an op makes, where it is one of several."""
    if isinstance(op, Linear):
        return tuple(out for out in op.outs for _ in ("weight", "bias"))
    return ("",) * len(op.tensors)


def _reorder(op: Rope, new: Rope) -> Reorder | None:
    if op.interleaved == new.interleaved:
        return None
    return Reorder(op.heads, op.head_dim, op.table.rotary_dim, new.interleaved)
