"""The launches of a program's instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from llmd.api import (
    Activate,
    Adapt,
    Add,
    Attention,
    CollapseStreams,
    Compress,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Experts,
    Gate,
    GatedDelta,
    GeneralizedDelta,
    Glu,
    Head,
    HeadLinear,
    Indexer,
    Instruction,
    Join,
    Linear,
    MergeAttention,
    MixStreams,
    Multiply,
    Norm,
    Recurrence,
    Rope,
    Router,
    SlottedOp,
    StateSpace,
    StreamWeights,
    TokenShift,
)
from llmd.api.adapter_items import without_adapters
from llmd_backend_cuda.adapter_memory import AdapterStep
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.expert_memory import ExpertMemory
from llmd_backend_cuda.ops.adapt import adapt_launches
from llmd_backend_cuda.ops.attention import AttentionMemory, attention_launches, rotated_attention_launches
from llmd_backend_cuda.ops.compress import PartsOfGroup, compress_launches
from llmd_backend_cuda.ops.elementwise import (
    launch_activate,
    launch_add,
    launch_gate,
    launch_glu,
    launch_join,
    launch_multiply,
)
from llmd_backend_cuda.ops.embed import Table, launch_embed
from llmd_backend_cuda.ops.encoder_attention import launch_encoder_attention
from llmd_backend_cuda.ops.experts import experts_launches
from llmd_backend_cuda.ops.gated_delta import gated_delta_launches
from llmd_backend_cuda.ops.head_linear import head_linear_launches
from llmd_backend_cuda.ops.indexer import IndexerMemory, indexer_launches
from llmd_backend_cuda.ops.linear import (
    Product,
    gated,
    head_product,
    is_few,
    launch_product,
    products_of,
    rows_of,
    with_residual,
)
from llmd_backend_cuda.ops.merge_attention import launch_merge_attention
from llmd_backend_cuda.ops.norm import launch_norm, launch_norm_add
from llmd_backend_cuda.ops.recurrence import States, launch_recurrence
from llmd_backend_cuda.ops.rope import launch_rope
from llmd_backend_cuda.ops.router import router_launches
from llmd_backend_cuda.ops.state_rows import StateRows
from llmd_backend_cuda.ops.state_space import state_space_launches
from llmd_backend_cuda.ops.streams import (
    launch_collapse_streams,
    launch_mix_streams,
    stream_weights_launches,
)
from llmd_backend_cuda.ops.time_mix import generalized_delta_launches, launch_token_shift
from llmd_backend_cuda.runtime import Launch, Memory

PATTERNS = (
    ("norm", "linear", "glu"),
    ("norm", "linear", "adapt", "glu"),
    ("norm", "linear"),
    ("norm", "linear", "adapt"),
    ("linear", "add"),
    ("linear", "adapt", "add"),
    ("norm", "add"),
    ("norm", "norm", "rope", "rope", "attention"),
    ("rope", "rope", "attention"),
)
"""Sequences of ops that are fewer launches together; those with adapters only in steps without any."""

_SINGLE_LAUNCHES: Mapping[str, Callable[[Context, SlottedOp, int], Launch]] = {
    Norm.kind: launch_norm,
    Rope.kind: launch_rope,
    EncoderAttention.kind: launch_encoder_attention,
    Glu.kind: launch_glu,
    Add.kind: launch_add,
    Activate.kind: launch_activate,
    Gate.kind: launch_gate,
    Multiply.kind: launch_multiply,
    Join.kind: launch_join,
    MergeAttention.kind: launch_merge_attention,
    CollapseStreams.kind: launch_collapse_streams,
    MixStreams.kind: launch_mix_streams,
}
"""Ops that are one launch and read nothing but slots and vectors."""

_OTHERS = (
    Adapt,
    Attention,
    Compress,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    Experts,
    GatedDelta,
    GeneralizedDelta,
    Head,
    HeadLinear,
    Indexer,
    Linear,
    Recurrence,
    Router,
    StateSpace,
    StreamWeights,
    TokenShift,
)
COMPUTED = frozenset({*_SINGLE_LAUNCHES, *(op.kind for op in _OTHERS)})
"""Kinds of ops that have kernels."""


class Memories(msgspec.Struct, frozen=True):
    """What some ops read and write besides slots and matrices."""

    tables: Mapping[int, Table]
    """By weight of the program."""
    attention: Mapping[tuple[int, int], AttentionMemory]
    """By KV group and layer of the model."""
    indexers: Mapping[int, IndexerMemory]
    """By KV group."""
    states: Mapping[int, States]
    """By KV group."""
    parts: Mapping[int, PartsOfGroup]
    """By KV group."""
    experts: ExpertMemory
    state_rows: StateRows
    streams: Memory
    """Products of `stream_bytes`."""
    adapters: AdapterStep | None = None
    """None: for steps in which no row has an adapter."""


def body_launches(context: Context, memories: Memories, rows: int) -> Iterator[tuple[int, Launch]]:
    """Yield the launches of all instructions but the head, for a bucket of rows, each with its part."""
    for part, item in _body(context, memories, rows):
        launches = launch_product(context, item, rows) if isinstance(item, Product) else (item,)
        for launch in launches:
            yield part, launch


def body_products(context: Context, memories: Memories, rows: int) -> Iterator[Product]:
    """Yield the products among `body_launches`."""
    return (item for _, item in _body(context, memories, rows) if isinstance(item, Product))


def head_products(context: Context, logits: int) -> Iterator[Product]:
    """Yield the product of the head, if there is one.

    ``logits`` is the address of float32 ``[max_outputs, vocab]``.
    """
    for slotted in context.program.ops:
        if isinstance(slotted.op, Head):
            yield head_product(context, slotted, logits)


def head_launches(context: Context, logits: int, outputs: int) -> Iterator[Launch]:
    """Yield the launches of the head for a number of output rows; ``logits`` as for `head_products`."""
    for product in head_products(context, logits):
        yield from launch_product(context, product, outputs)


def _body(context: Context, memories: Memories, rows: int) -> Iterator[tuple[int, Product | Launch]]:
    for one in context.program.instructions:
        instruction = one if memories.adapters else without_adapters(one)
        for item in _instruction(context, memories, instruction, rows):
            yield instruction.part, item


def _instruction(
    context: Context, memories: Memories, instruction: Instruction, rows: int
) -> Iterator[Product | Launch]:
    match instruction.pattern:
        case (*_, "rope", "rope", "attention"):
            op = instruction.ops[-1].op
            assert isinstance(op, Attention), "the pattern says so"
            memory = memories.attention[op.group, op.layer]
            yield from rotated_attention_launches(context, instruction, rows, memory)
        case ("norm", "linear") | ("norm", "linear", "glu") if _norm_is_fused(instruction):
            yield from _normed(context, instruction, rows)
        case ("linear", "add") if _add_is_fused(instruction):
            yield _added(context, instruction)
        case ("norm", "add") if _add_is_fused(instruction):
            yield launch_norm_add(context, instruction, rows)
        case _:
            for slotted in instruction.ops:
                yield from _op(context, memories, slotted, rows)


def _norm_is_fused(instruction: Instruction) -> bool:
    """Return whether the product alone reads the norm, which is of a kind that its kernel computes."""
    norm, linear = instruction.ops[:2]
    op = norm.op
    assert isinstance(op, Norm), "the pattern says so"
    read_elsewhere = norm.outputs[0] in instruction.outputs or any(
        norm.outputs[0] in slotted.inputs for slotted in instruction.ops[2:]
    )
    return (
        op.method == "rms"
        and op.heads == 1
        and op.bias is None
        and not (op.weight is None and op.offset)
        and linear.inputs == norm.outputs
        and not read_elsewhere
    )


def _normed(context: Context, instruction: Instruction, rows: int) -> Iterator[Product | Launch]:
    norm, linear, *rest = instruction.ops
    products = products_of(context, linear, rows_of(context, norm.inputs[0], norm))
    if (
        _glu_is_fused(instruction)
        and len(products) == 1
        and is_few(products[0], rows, context.runtime.shared_bytes)
    ):
        yield gated(context, products[0], rest[0])
        return
    yield from products
    for glu in rest:
        yield launch_glu(context, glu, rows)


def _glu_is_fused(instruction: Instruction) -> bool:
    """Return whether a gated product, if there is one, alone reads what the linear op writes."""
    linear, *rest = instruction.ops[1:]
    read_elsewhere = set(linear.outputs) & set(instruction.outputs)
    return bool(rest) and rest[0].inputs == linear.outputs and not read_elsewhere


def _add_is_fused(instruction: Instruction) -> bool:
    """Return whether the sum alone reads what the first op writes, as what is scaled and added."""
    first, add = instruction.ops
    product = first.outputs[0]
    alone = len(first.outputs) == 1 and product not in instruction.outputs
    return alone and add.inputs[1] == product and add.inputs[0] != product


def _added(context: Context, instruction: Instruction) -> Product:
    linear, add = instruction.ops
    assert isinstance(add.op, Add), "the pattern says so"
    (product,) = products_of(context, linear, rows_of(context, linear.inputs[0]))
    return with_residual(context, product, add.inputs[0], add.outputs[0], add.op.scale)


def _op(context: Context, memories: Memories, slotted: SlottedOp, rows: int) -> Iterator[Product | Launch]:
    match slotted.op:
        case Linear():
            yield from products_of(context, slotted, rows_of(context, slotted.inputs[0]))
        case Attention() | Indexer() | Compress():
            yield from _with_keys(context, memories, slotted, rows)
        case Adapt():
            yield from adapt_launches(context, slotted, rows, memories.adapters)
        case Router() | StreamWeights() | Embed() | EmbedPosition() | EmbedTokenType():
            yield from _with_table(context, memories, slotted, rows)
        case Experts():
            yield from experts_launches(context, slotted, rows, memories.experts)
        case HeadLinear():
            yield from head_linear_launches(context, slotted, rows)
        case (
            GatedDelta(group=group)
            | StateSpace(group=group)
            | Recurrence(group=group)
            | TokenShift(group=group)
            | GeneralizedDelta(group=group)
        ):
            yield from _with_states(context, slotted, rows, memories.states[group], memories.state_rows)
        case Head():
            pass  # see head_products
        case op:
            yield _SINGLE_LAUNCHES[op.kind](context, slotted, rows)


def _with_table(context: Context, memories: Memories, slotted: SlottedOp, rows: int) -> Iterator[Launch]:
    table = memories.tables[slotted.weights[0] or 0]
    match slotted.op:
        case Router():
            yield from router_launches(context, slotted, rows, table, memories.experts.products)
        case StreamWeights():
            yield from stream_weights_launches(context, slotted, rows, table, memories.streams)
        case _:
            yield launch_embed(context, slotted, rows, table)


def _with_keys(context: Context, memories: Memories, slotted: SlottedOp, rows: int) -> Iterator[Launch]:
    match slotted.op:
        case Attention(group=group, layer=layer):
            yield from attention_launches(context, slotted, rows, memories.attention[group, layer])
        case Indexer(group=group):
            yield from indexer_launches(context, slotted, rows, memories.indexers[group])
        case Compress(group=group):
            yield from compress_launches(context, slotted, rows, memories.parts[group])


def _with_states(
    context: Context, slotted: SlottedOp, rows: int, states: States, state_rows: StateRows
) -> Iterator[Launch]:
    match slotted.op:
        case GatedDelta():
            yield from gated_delta_launches(context, slotted, rows, states, state_rows)
        case StateSpace():
            yield from state_space_launches(context, slotted, rows, states, state_rows)
        case GeneralizedDelta():
            yield from generalized_delta_launches(context, slotted, rows, states, state_rows)
        case TokenShift():
            yield launch_token_shift(context, slotted, rows, states)
        case _:
            yield launch_recurrence(context, slotted, rows, states)
