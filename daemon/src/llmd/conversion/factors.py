"""Find what multiplies tensors of a model whose other form has no multipliers, as Falcon-H1 in GGUF files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from llmd.api.ops import Add, Attention, Embed, Head, Linear, Op

Pair = tuple[Op, Op]
"""An op of the source, and that of the target."""


class Factors(msgspec.Struct, frozen=True):
    """The factors of the values in a part of a plan."""

    of_values: Mapping[str, float]
    """By the value that a linear op writes."""

    def of_tensors(self, op: Op, new: Op) -> Sequence[float]:
        """Return what multiplies each tensor of an op."""
        if isinstance(op, Linear):
            return [self.of_values.get(out, 1.0) for out in op.outs for _ in ("weight", "bias")]
        if isinstance(op, Embed | Head) and isinstance(new, Embed | Head):
            return [op.scale / new.scale, *[1.0] * (len(op.tensors) - 1)]
        return [1.0] * len(op.tensors)


def is_multiplier(op: Op) -> bool:
    """Whether an op only multiplies a value by a number."""
    return isinstance(op, Add) and op.a == op.b == op.out


def find_factors(ops: Sequence[Op], new_ops: Sequence[Op], pairs: Iterable[Pair]) -> Factors:
    """Compare the ops of a part of two plans; ``pairs`` are those that are no multipliers.

    A factor of attention scores goes to keys, and one of what is added to the residual stream to the matrix
    that writes it.
    """
    before, after = _multiplied(ops), _multiplied(new_ops)
    found = {value: before.get(value, 1.0) / after.get(value, 1.0) for value in before | after}
    for op, new in pairs:
        if isinstance(op, Add) and isinstance(new, Add) and op.scale != new.scale:
            found[op.b] = found.get(op.b, 1.0) * op.scale / new.scale
        if isinstance(op, Attention) and isinstance(new, Attention) and op.k and op.scale != new.scale:
            found[op.k] = found.get(op.k, 1.0) * op.scale / new.scale
    return Factors(found)


def _multiplied(ops: Sequence[Op]) -> dict[str, float]:
    """Return the factors of values that multipliers state."""
    return {op.out: 1.0 + op.scale for op in ops if isinstance(op, Add) and is_multiplier(op)}
