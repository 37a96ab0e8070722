"""Map the tensors of one form of a model to those of another by comparing the plans of both.

The forms may divide the weights of an op among tensors in different ways: a matrix of the target can be a
part of a larger tensor, have experts that the source stores one by one, or be transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from llmd.api.ops import Norm, Op
from llmd.api.plan import ModelPlan, Part
from llmd.api.state_ops import GatedDelta, Rates, StateSpace
from llmd.api.tensors import MEMBER, TensorRef
from llmd.conversion.factors import find_factors, is_multiplier
from llmd.conversion.orders import Order, find_orders


class MappedPart(msgspec.Struct, frozen=True):
    """A part of a tensor of the target, and where its weights are in the source."""

    source: TensorRef
    target: TensorRef
    shift: float = 0.0
    """Added to each element."""
    factor: float = 1.0
    """Multiplies each element."""
    rates: Rates | None = None
    """The form of rates that the target has; None: the elements are not rates, or have that form."""
    rows: Order | None = None
    """The order of rows that the target has; None: that of the source."""
    columns: Order | None = None

    @property
    def stays(self) -> bool:
        """Whether each row has the same place in both tensors."""
        same_place = msgspec.structs.replace(self.source, name=self.target.name) == self.target
        return same_place and self.rows is None and self.columns is None

    @property
    def as_stored(self) -> MappedPart:
        """The same part with the matrices of a target that has them transposed as it stores them.

        Other parts of such a tensor may not be transposed: those of latent attention, whose keys are.
        """
        if self.target.columns is None:
            return self
        source = msgspec.structs.replace(
            self.source,
            is_transposed=not self.source.is_transposed,
            rows=self.source.columns,
            columns=self.source.rows,
        )
        return msgspec.structs.replace(self, source=source, target=self.target.as_stored)

    @property
    def whole(self) -> MappedPart:
        """The whole tensors, whose other rows have the same place too."""
        refs = (msgspec.structs.replace(ref, rows=None, period=None) for ref in (self.source, self.target))
        source, target = refs
        return msgspec.structs.replace(self, source=source, target=target)

    def member(self, number: int, name: str) -> MappedPart:
        """Return the part of one expert; in the target, its tensor has no others."""
        target = msgspec.structs.replace(
            self.target, name=name, shape=self.target.shape[1:], is_stack=False, members=None
        )
        return msgspec.structs.replace(self, source=self.source.member(number), target=target)


class MappedTensor(msgspec.Struct, frozen=True):
    """A tensor of the target, and the parts that it consists of."""

    ref: TensorRef
    """The whole tensor."""
    ops: frozenset[str]
    """Kinds of the ops that use it."""
    parts: tuple[MappedPart, ...]

    @property
    def members(self) -> Iterator[MappedTensor]:
        """The tensors of the members of a stack."""
        for number in range(self.ref.shape[0]):
            name = self.ref.name.replace(MEMBER, str(number))
            parts = tuple(part.member(number, name) for part in self.parts)
            whole = msgspec.structs.replace(self.ref, name=name, shape=self.ref.shape[1:], is_stack=False)
            yield msgspec.structs.replace(self, ref=whole, parts=parts)


def map_tensors(source: ModelPlan, target: ModelPlan) -> Mapping[str, MappedTensor]:
    """Return the tensors of the target by name, in order of first use.

    The plans may differ only in tensor names, in how tensors hold weights, in offsets of norm weights, in the
    form of rates, in the order of RoPE pairs and of heads of values, and in multipliers.
    """
    parts: dict[str, list[MappedPart]] = {}
    ops: dict[str, set[str]] = {}
    for part, new_part in zip(source.parts, target.parts, strict=True):
        for kind, found in _of_part(part, new_part):
            parts.setdefault(found.target.name, []).append(found)
            ops.setdefault(found.target.name, set()).add(kind)
    tensors = (_tensor(found, frozenset(ops[name])) for name, found in parts.items())
    return {one.ref.name: one for tensor in tensors for one in _stored(tensor)}


def _stored(tensor: MappedTensor) -> Iterable[MappedTensor]:
    """Return the tensors of the target's files."""
    return tensor.members if MEMBER in tensor.ref.name else (tensor,)


def _tensor(parts: Sequence[MappedPart], ops: frozenset[str]) -> MappedTensor:
    first = parts[0].whole
    alike = {(part.source.name, part.factor) for part in parts} == {(first.source.name, first.factor)}
    stays = alike and all(part.stays for part in parts)
    distinct = (first,) if stays else tuple(dict.fromkeys(parts))
    return MappedTensor(first.target, ops, distinct)


def _of_part(part: Part, new_part: Part) -> Iterator[tuple[str, MappedPart]]:
    """Yield the kind of op and the mapped part of each tensor of its ops."""
    ops, new_ops = ([op for op in one.ops if not is_multiplier(op)] for one in (part, new_part))
    pairs = list(zip(ops, new_ops, strict=True))
    orders, factors = find_orders(pairs), find_factors(part.ops, new_part.ops, pairs)
    for op, new in pairs:
        shift = op.offset - new.offset if isinstance(op, Norm) and isinstance(new, Norm) else 0.0
        refs = zip(op.tensors, new.tensors, strict=True)
        changes = zip(factors.of_tensors(op, new), _rates(op, new), orders.of_tensors(op), strict=True)
        for (ref, new_ref), (factor, rates, (rows, columns)) in zip(refs, changes, strict=True):
            if ref is not None and new_ref is not None:
                yield op.kind, MappedPart(ref, new_ref, shift, factor, rates, rows, columns).as_stored


def _rates(op: Op, new: Op) -> Sequence[Rates | None]:
    """Return the form that each tensor of an op takes on, if it holds rates in another."""
    kinds = GatedDelta | StateSpace
    if not isinstance(op, kinds) or not isinstance(new, kinds) or op.rates_as == new.rates_as:
        return [None] * len(op.tensors)
    return [new.rates_as if field == "rates" else None for field in op.tensor_fields]
