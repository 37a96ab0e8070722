"""What the gated delta rule and the state space of Mamba-2 share (``shaders/state_slots.glsl``)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api import Op, Program, StageLimits
from llmd.api.program import SlottedOp
from llmd.api.state_ops import GatedDelta, StateSizes, StateSpace
from llmd.api.time_mix_ops import GeneralizedDelta
from llmd_backend_vulkan.commands import Buffer, Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word, stride_of
from llmd_backend_vulkan.memory import Region
from llmd_backend_vulkan.step_memory import table_name

MAX_KEY_DIM = 256
"""Most elements of a key: a thread has a quarter of a column of the state in registers."""

MIXED, DECAYS, SHARES = "convolved rows", "decays of states", "shares of states"
"""Names of scratch memory: rows after the convolutions, factors of states, and how much a row writes."""

PARTS, COLUMNS, THREADS = 4, 16, 64
"""Threads that share a column of a state; columns and threads of a work group."""


class StateLayer(msgspec.Struct, frozen=True):
    """An op that keeps a state, and where that is."""

    context: Context
    inputs: tuple[int, int, int]
    """Slots of the queries, the keys and the values."""
    out: int
    """Slot of the result."""
    sizes: StateSizes
    decays: int
    """Factors of a row: one for each head, or for each element of the keys of all heads."""
    table: int
    """Where the slots of sequences are listed."""
    states: Region
    slot_words: int

    @classmethod
    def of(cls, context: Context, slotted: SlottedOp, decays: int) -> StateLayer:
        """Return the layer of an op whose first three inputs are queries, keys and values."""
        op = slotted.op
        assert isinstance(op, GatedDelta | StateSpace)
        assert slotted.kv_layer is not None
        q, k, v = slotted.inputs[:3]
        pool, table = context.pools[op.group], context.place(table_name(op.group))
        states = pool.layers[slotted.kv_layer]
        return cls(context, (q, k, v), slotted.outputs[0], op.sizes, decays, table, states, pool.block_words)

    @property
    def key_width(self) -> int:
        """Elements of the keys of a row."""
        return self.sizes.key_heads * self.sizes.key_dim

    def scratch(self, name: str, width: int) -> tuple[int, int]:
        """Return where rows of ``width`` elements are in the scratch memory, and their stride."""
        return self.context.scratch[name], stride_of(width)


def convolve(
    layer: StateLayer, taps: Sequence[int | None], biases: Sequence[int | None], factors: Sequence[float]
) -> list[Dispatch]:
    """Return the dispatches of the convolutions of queries, keys and values.

    A factor other than 0 multiplies each head after it was divided by its length.
    """
    context, sizes, (mixed, mixed_stride) = (
        layer.context,
        layer.sizes,
        layer.scratch(MIXED, layer.sizes.width),
    )
    found, first = [], 0
    for number, slot in enumerate(layer.inputs):
        heads, dim = (sizes.heads, sizes.value_dim) if number == 2 else (sizes.key_heads, sizes.key_dim)
        (filters, tap_at), (bias, bias_at) = context.vector(taps[number]), context.vector(biases[number])
        constants = (
            context.counts, context.place("sequences"), context.place("row_offsets"), layer.table,
            layer.states.at, layer.slot_words, context.slots[slot], context.stride(slot), mixed + first,
            mixed_stride, dim, sizes.taps, tap_at, bias_at, sizes.width, first, float_word(factors[number]),
        )  # fmt: skip
        shader = Shader("state_convolve", (int(factors[number] != 0.0), int(biases[number] is not None)))
        buffers = (context.work, filters, bias, layer.states.buffer)
        found.append(Dispatch(shader, buffers, constants, (heads, context.rows, 1)))
        first += heads * dim
    return found


def weigh(
    layer: StateLayer,
    shader: Shader,
    inputs: tuple[int, int],
    vectors: tuple[int | None, int | None],
    bounds: tuple[float, float] = (0.0, 0.0),
) -> Dispatch:
    """Return the dispatch that computes decays and shares.

    ``inputs`` are the slots of decays and shares, ``vectors`` the weights of rates and of the bias.
    """
    context, heads = layer.context, layer.sizes.heads
    (rates, rate_at), (biases, bias_at) = (context.vector(index) for index in vectors)
    places = [place for slot in inputs for place in (context.slots[slot], context.stride(slot))]
    constants = (
        context.counts, *places, *layer.scratch(DECAYS, layer.decays), *layer.scratch(SHARES, heads),
        layer.decays // heads, rate_at, bias_at, *map(float_word, bounds),
    )  # fmt: skip
    return Dispatch(shader, (context.work, rates, biases), constants, (heads, context.rows, 1))


def run(layer: StateLayer, skips: tuple[Buffer, int], *, is_space: bool, is_tiled: bool) -> list[Dispatch]:
    """Return the dispatches that change states and read them, and that keep rows for the next step."""
    context, sizes = layer.context, layer.sizes
    buffer, skip_at = skips
    slots = (context.counts, context.place("row_offsets"), layer.table, layer.states.at, layer.slot_words)
    constants = (
        *slots, (sizes.taps - 1) * sizes.width, *layer.scratch(MIXED, sizes.width),
        *layer.scratch(DECAYS, layer.decays), *layer.scratch(SHARES, sizes.heads),
        context.slots[layer.out], context.stride(layer.out), sizes.key_heads, sizes.key_dim, sizes.value_dim,
        layer.decays // sizes.heads, int(is_tiled), skip_at,
    )  # fmt: skip
    sequences = min(context.rows, context.limits.max_sequences)
    columns = -(-sizes.value_dim // COLUMNS)
    shader = Shader("state_run", (int(is_space), -(-sizes.key_dim // PARTS)))
    work = float(context.rows) * sizes.heads * sizes.key_dim * sizes.value_dim * 3
    found = [
        Dispatch(
            shader,
            (context.work, layer.states.buffer, buffer),
            constants,
            (columns, sizes.heads, sequences),
            work,
        )
    ]
    if sizes.taps > 1:
        q, _, v = layer.inputs
        kept = (
            *slots, *(context.slots[slot] for slot in layer.inputs), context.stride(q), context.stride(v),
            layer.key_width, sizes.width, sizes.taps,
        )  # fmt: skip
        groups = (-(-sizes.width // THREADS), sequences, 1)
        found.append(Dispatch(Shader("state_keep"), (context.work, layer.states.buffer), kept, groups))
    return found


def states_words(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of scratch memory that the largest of these ops of a program needs, by name."""
    widths = [found for slotted in program.ops if (found := _row_widths(slotted.op))]
    most = [max(map(stride_of, column)) for column in zip(*widths, strict=True)]
    return {
        name: limits.max_rows * width
        for name, width in zip((MIXED, DECAYS, SHARES), most or (0, 0, 0), strict=True)
    }


def _row_widths(op: Op) -> tuple[int, int, int] | None:
    """Return the elements of what a row is turned into, of its decays and of its shares, if it changes a
    matrix.
    """
    match op:
        case GatedDelta() | StateSpace():
            return op.sizes.width, op.bias.view_shape[-1], op.heads
        case GeneralizedDelta():
            return op.sizes.width, op.heads * op.head_dim, 0
        case _:
            return None
