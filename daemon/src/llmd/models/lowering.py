"""Lower the parts of a plan to a program for one device.

One pure pass serves every backend: group ops by the device's fusion patterns, assign buffer slots to values
by liveness, and number weights, rope tables and KV layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from llmd.api.adapter_ops import Adapt
from llmd.api.compressed_ops import Compress
from llmd.api.errors import PluginError
from llmd.api.expert_ops import Experts, Router
from llmd.api.features import STREAMS, TAPS
from llmd.api.latent_ops import HeadLinear, Indexer, Join
from llmd.api.ops import (
    Attention,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    Glu,
    KVOp,
    Linear,
    Op,
    Rope,
    RopeTable,
)
from llmd.api.plan import HIDDEN, KVGroup, ModelPlan
from llmd.api.program import ActivationDtype, Instruction, Pattern, Precision, Program, SlottedOp
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.api.stream_ops import CollapseStreams, StreamWeights
from llmd.api.tensors import Format, TensorRef, Weight
from llmd.models.needed_features import needed_features

FormatOf = Callable[[str, TensorRef], Format]
"""Chooses the format of a weight; the first argument is the kind of the op that uses it."""

_Value = int


class _BoundOp(msgspec.Struct, frozen=True):
    """An op with numbered values; each write gets a new number."""

    op: Op
    part: int
    inputs: tuple[_Value, ...]
    outputs: tuple[_Value, ...]


class _Bound(msgspec.Struct, frozen=True):
    """A range of parts with numbered values."""

    ops: list[_BoundOp]
    widths: list[int]
    """Elements per row of each value."""
    hidden_in: _Value | None
    hidden_out: _Value | None
    hidden_after: dict[int, _Value]
    """The value of `HIDDEN` after each part."""


def lower(
    plan: ModelPlan,
    first_part: int,
    last_part: int,
    *,
    format_of: FormatOf,
    patterns: Sequence[Pattern] = (),
    activations: ActivationDtype = "int8",
    precision: Precision = "f32",
    taps: Iterable[int] = (),
    streamed: Iterable[int] = (),
) -> Program:
    """Lower the parts ``[first_part, last_part)``.

    ``taps`` and ``streamed`` are parts of the whole plan; the program has those in its range.

    Raises:
        PluginError: an op reads a value that no earlier op writes (a bug in the architecture plugin).
    """
    bound = _bind(plan, first_part, last_part)
    fused = _fuse(bound.ops, patterns)
    tapped = {part: bound.hidden_after[part] for part in sorted(taps) if first_part <= part < last_part}
    in_memory = tuple(part for part in sorted(streamed) if first_part <= part < last_part)
    kept = set(tapped.values()) if bound.hidden_out is None else {*tapped.values(), bound.hidden_out}
    last_use = _last_uses(fused, kept)
    slots, slot_widths = _assign_slots(fused, bound, last_use)
    groups = _groups_in_range(plan, first_part, last_part)
    weights = _weights(bound.ops, format_of)
    ropes = tuple(dict.fromkeys(b.op.table for b in bound.ops if isinstance(b.op, Rope)))
    slotted = _Slotter(slots, weights, ropes, groups, format_of)
    escaping = ([v for b in ops for v in b.outputs if last_use[v] > i] for i, ops in enumerate(fused))
    return Program(
        first_part=first_part,
        last_part=last_part,
        hidden_size=plan.hidden_size,
        vocab_size=plan.vocab_size,
        context_len=plan.context_len,
        groups=groups,
        instructions=tuple(
            Instruction(tuple(slotted(b) for b in ops), ops[0].part, tuple(slots[v] for v in values))
            for ops, values in zip(fused, escaping, strict=True)
        ),
        slot_widths=tuple(slot_widths),
        weights=weights,
        ropes=ropes,
        hidden_in=None if bound.hidden_in is None else slots[bound.hidden_in],
        hidden_out=None if bound.hidden_out is None else slots[bound.hidden_out],
        activations=activations,
        precision=precision,
        needs=(
            *sorted({*plan.needs, *needed_features(groups, (b.op for b in bound.ops))}),
            *((TAPS,) if tapped else ()),
            *((STREAMS,) if in_memory else ()),
        ),
        taps=tuple(tapped),
        tap_slots=tuple(slots[value] for value in tapped.values()),
        streamed=in_memory,
    )


def _bind(plan: ModelPlan, first_part: int, last_part: int) -> _Bound:
    """Number the values."""
    widths: list[int] = []
    hidden_after: dict[int, _Value] = {}
    bound: list[_BoundOp] = []
    names: dict[str, _Value] = {}
    hidden_in = None
    if first_part > 0:
        hidden_in = names[HIDDEN] = _new_value(widths, plan.hidden_size)
    for index in range(first_part, last_part):
        part = plan.parts[index]
        names = {name: names[name] for name in (HIDDEN, *plan.carried) if name in names}
        for op in part.ops:
            missing = [name for name in op.reads if name not in names]
            if missing:
                raise PluginError(
                    f"{plan.architecture}, {part.name}: {op.kind} reads {missing[0]!r}, which nothing writes",
                    hint="report this to the author of the architecture plugin",
                )
            inputs = tuple(names[name] for name in op.reads)
            outputs = tuple(_new_value(widths, width) for width in _out_widths(op, inputs, widths))
            names.update(zip(op.writes, outputs, strict=True))
            bound.append(_BoundOp(op, index, inputs, outputs))
        if HIDDEN in names:
            hidden_after[index] = names[HIDDEN]
    ends_with_head = last_part == len(plan.parts) and plan.has_head
    hidden_out = None if ends_with_head else names[HIDDEN]
    return _Bound(bound, widths, hidden_in, hidden_out, hidden_after)


def _new_value(widths: list[int], width: int) -> _Value:
    widths.append(width)
    return len(widths) - 1


def _out_widths(op: Op, inputs: tuple[_Value, ...], widths: list[int]) -> list[int]:
    match op:
        case Linear(weights=weights):
            return [weight.view_shape[0] for weight in weights]
        case Adapt():
            return [widths[value] for value in inputs[1:]]
        case Attention(heads=heads, sums=str()):
            return [_out_width(op, inputs, widths), heads]
        case _:
            return [_out_width(op, inputs, widths)] * len(op.writes)


def _out_width(op: Op, inputs: tuple[_Value, ...], widths: list[int]) -> int:
    if (own := _own_width(op)) is not None:
        return own
    match op:
        case CollapseStreams(streams=streams):
            return widths[inputs[0]] // streams
        case Join():
            return sum(widths[value] for value in inputs)
        case Glu():
            return widths[inputs[1]]
        case _:
            return widths[inputs[0]]


def _own_width(op: Op) -> int | None:
    """Return the width of what the op writes; None if it depends on what it reads."""
    width = None
    match op:
        case Embed(column_range=(first, last)):
            width = last - first
        case EmbedPosition(table=table) | EmbedTokenType(table=table):
            width = table.shape[1]
        case (
            Attention(heads=heads, value_dim=dim)
            | GatedDelta(heads=heads, value_dim=dim)
            | StateSpace(heads=heads, head_dim=dim)
        ):
            width = heads * dim
        case HeadLinear(weight=weight):
            width = op.heads * weight.view_shape[1]
        case Indexer(top_k=dim) | Compress(dim=dim):
            width = dim
        case StreamWeights(bias=bias):
            width = bias.view_shape[0]
        case Router(weight=weight) | Experts(down=TensorRef() as weight):
            width = weight.view_shape[-2]
    return width


def _fuse(bound: list[_BoundOp], patterns: Sequence[Pattern]) -> list[tuple[_BoundOp, ...]]:
    """At each op, take the longest pattern that fits; an op that starts no pattern stays alone."""
    longest_first = sorted(patterns, key=len, reverse=True)
    fused: list[tuple[_BoundOp, ...]] = []
    at = 0
    while at < len(bound):
        windows = (bound[at : at + len(pattern)] for pattern in longest_first if _fits(bound, at, pattern))
        fused.append(tuple(next(windows, bound[at : at + 1])))
        at += len(fused[-1])
    return fused


def _fits(bound: list[_BoundOp], at: int, pattern: Pattern) -> bool:
    window = bound[at : at + len(pattern)]
    return tuple(b.op.kind for b in window) == pattern and _is_linked(window)


def _is_linked(window: Sequence[_BoundOp]) -> bool:
    """Return whether the ops, joined by the values that one writes and another reads, are one piece."""
    inner = {value for b in window for value in b.outputs}
    pieces: list[set[_Value]] = []
    for b in window:
        piece = inner & {*b.inputs, *b.outputs}
        touching = [other for other in pieces if other & piece]
        pieces = [other for other in pieces if not other & piece]
        pieces.append(piece.union(*touching))
    return len(pieces) == 1


def _last_uses(fused: list[tuple[_BoundOp, ...]], kept: set[_Value]) -> dict[_Value, int]:
    """Return the last instruction that uses each value; values in ``kept`` are used after all of them."""
    last_use = {v: i for i, ops in enumerate(fused) for b in ops for v in (*b.inputs, *b.outputs)}
    return last_use | dict.fromkeys(kept, len(fused))


def _assign_slots(
    fused: list[tuple[_BoundOp, ...]], bound: _Bound, last_use: dict[_Value, int]
) -> tuple[dict[_Value, int], list[int]]:
    """Assign each value a slot of its width; it is free after the last instruction that uses the value.

    What adapters change stays in its slot, so that nothing is copied for rows without an adapter.
    """
    slots: dict[_Value, int] = {}
    slot_widths: list[int] = []
    free: dict[int, list[int]] = {}

    def take(value: _Value) -> None:
        width = bound.widths[value]
        if free.get(width):
            slots[value] = free[width].pop()
        else:
            slots[value] = len(slot_widths)
            slot_widths.append(width)

    if bound.hidden_in is not None:
        take(bound.hidden_in)
    for index, ops in enumerate(fused):
        changed = {new: old for new, old in _changed_in_place(ops) if last_use[old] == index}
        for value in (v for b in ops for v in b.outputs if v not in changed):
            take(value)
        slots |= {new: slots[old] for new, old in changed.items()}
        touched = dict.fromkeys(v for b in ops for v in (*b.inputs, *b.outputs))
        kept = set(changed.values())
        for value in (v for v in touched if last_use[v] == index and v not in kept):
            free.setdefault(bound.widths[value], []).append(slots[value])
    return slots, slot_widths


def _changed_in_place(ops: Sequence[_BoundOp]) -> Iterator[tuple[_Value, _Value]]:
    """Yield the values of an instruction that may have the slot of another one, each with that one: what
    adapters change and no later op of the instruction reads as it was.
    """
    for place, bound in enumerate(ops):
        if isinstance(bound.op, Adapt):
            read_later = {value for later in ops[place + 1 :] for value in later.inputs}
            pairs = zip(bound.outputs, bound.inputs[1:], strict=True)
            yield from ((new, old) for new, old in pairs if old not in read_later)


def _groups_in_range(plan: ModelPlan, first_part: int, last_part: int) -> tuple[KVGroup, ...]:
    inside = {part.layer for part in plan.parts[first_part:last_part] if part.kind == "mixer"}
    return tuple(
        msgspec.structs.replace(group, layers=tuple(layer for layer in group.layers if layer in inside))
        for group in plan.groups
    )


def _weights(bound: list[_BoundOp], format_of: FormatOf) -> tuple[Weight, ...]:
    uses = ((b.op.kind, ref) for b in bound for ref in b.op.tensors if ref is not None)
    return tuple(dict.fromkeys(Weight(ref, format_of(kind, ref)) for kind, ref in uses))


class _Slotter:
    """Replaces values, tensors, rope tables and layers by their numbers."""

    def __init__(
        self,
        slots: dict[_Value, int],
        weights: tuple[Weight, ...],
        ropes: tuple[RopeTable, ...],
        groups: tuple[KVGroup, ...],
        format_of: FormatOf,
    ) -> None:
        self._slots = slots
        self._weights = {weight: i for i, weight in enumerate(weights)}
        self._ropes = {table: i for i, table in enumerate(ropes)}
        self._groups = groups
        self._format_of = format_of

    def __call__(self, bound: _BoundOp) -> SlottedOp:
        op = bound.op
        return SlottedOp(
            op=op,
            inputs=tuple(self._slots[v] for v in bound.inputs),
            outputs=tuple(self._slots[v] for v in bound.outputs),
            weights=tuple(self._weight(op.kind, ref) for ref in op.tensors),
            rope=self._ropes[op.table] if isinstance(op, Rope) else None,
            kv_layer=self._groups[op.group].layers.index(op.layer) if isinstance(op, KVOp) else None,
        )

    def _weight(self, kind: str, ref: TensorRef | None) -> int | None:
        return None if ref is None else self._weights[Weight(ref, self._format_of(kind, ref))]
