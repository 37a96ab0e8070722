"""What the kernels cannot run."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import (
    Attention,
    EncoderAttention,
    Experts,
    GatedDelta,
    GeneralizedDelta,
    Indexer,
    Norm,
    Op,
    Program,
    Refusal,
    Rope,
    StateSpace,
    StreamWeights,
    TokenShift,
)
from llmd_backend_cuda.kv_memory import MAX_HEAD_DIM
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS
from llmd_backend_cuda.ops.encoder_attention import MAX_HEAD_DIM as MAX_ENCODER_HEAD_DIM
from llmd_backend_cuda.ops.experts import MAX_EXPERTS
from llmd_backend_cuda.ops.indexer import MAX_INDEX_DIM, MAX_QUERY, query_elements
from llmd_backend_cuda.ops.norm import MAX_WIDTH
from llmd_backend_cuda.ops.rope import MAX_PAIRS
from llmd_backend_cuda.ops.state_rows import MAX_KEY_DIM
from llmd_backend_cuda.ops.streams import MAX_STREAMS
from llmd_backend_cuda.ops.time_mix import MAX_SHIFTS


def refusals(program: Program) -> list[Refusal]:
    """Return all reasons why the kernels cannot run a program."""
    return [*_formats(program), *_shapes(program), *_groups(program)]


def _formats(program: Program) -> Iterator[Refusal]:
    unknown = {weight.format for weight in program.weights} - set(CLAIMED_FORMATS)
    for name in sorted(unknown):
        yield Refusal(f"format {name}", f"the CUDA backend has {', '.join(CLAIMED_FORMATS)}")


def _shapes(program: Program) -> Iterator[Refusal]:
    found: dict[Refusal, None] = {}  # layers are alike
    for slotted in program.ops:
        width = program.slot_widths[slotted.inputs[0]] if slotted.inputs else 0
        found |= dict.fromkeys(_of_op(slotted.op, width))
    yield from found


def _of_op(op: Op, width: int) -> Iterator[Refusal]:
    """Yield what is refused of an op whose first input has rows of ``width`` elements."""
    if isinstance(op, Attention | EncoderAttention):
        most = MAX_HEAD_DIM if isinstance(op, Attention) else MAX_ENCODER_HEAD_DIM
        yield from _too_large("heads", op.head_dim, most)
    if isinstance(op, Attention) and op.scale < 0:
        yield Refusal(f"attention with scale {op.scale:g}", "the CUDA backend has scales of at least 0")
    if isinstance(op, Indexer):
        yield from _too_large("index keys", op.head_dim, MAX_INDEX_DIM)
        yield from _too_large("index queries", query_elements(op), MAX_QUERY)
    if isinstance(op, StreamWeights):
        yield from _too_many("streams", op.streams, MAX_STREAMS)
    if isinstance(op, Rope):
        yield from _too_large("rotations", 2 * len(op.table.inv_freq), 2 * MAX_PAIRS)
    if isinstance(op, Experts):
        yield from _too_many("experts", op.num_experts, MAX_EXPERTS)
    if isinstance(op, GatedDelta | StateSpace | GeneralizedDelta):
        yield from _too_large("keys of states", op.sizes.key_dim, MAX_KEY_DIM)
    if isinstance(op, TokenShift):
        yield from _too_many("mixes of a row", len(op.outs), MAX_SHIFTS)
    if isinstance(op, Norm):
        yield from _too_large("norms", width // op.heads, MAX_WIDTH)


def _too_large(what: str, size: int, most: int) -> Iterator[Refusal]:
    if size > most:
        yield Refusal(f"{what} of {size} elements", f"the CUDA backend has up to {most}")


def _too_many(what: str, count: int, most: int) -> Iterator[Refusal]:
    if count > most:
        yield Refusal(f"{count} {what} of a layer", f"the CUDA backend has up to {most}")


def _groups(program: Program) -> Iterator[Refusal]:
    for group in program.groups:
        if group.layers and group.kind == "paged" and group.value_dim != group.key_dim:
            what = f"keys of {group.key_dim} and values of {group.value_dim} elements"
            yield Refusal(what, "the CUDA backend stores keys and values of equal size")
