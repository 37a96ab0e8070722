"""What the shaders cannot run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from llmd.api import (
    Adapt,
    Attention,
    EncoderAttention,
    Experts,
    GatedDelta,
    GeneralizedDelta,
    Indexer,
    Op,
    Program,
    Refusal,
    StateSpace,
    StreamWeights,
)
from llmd_backend_vulkan.kv_memory import MAX_HEAD_DIM
from llmd_backend_vulkan.matrices import CLAIMED_FORMATS
from llmd_backend_vulkan.ops.adapt import MAX_BYTES
from llmd_backend_vulkan.ops.indexer import MAX_INDEX_DIM
from llmd_backend_vulkan.ops.router import MAX_EXPERTS
from llmd_backend_vulkan.ops.states import MAX_KEY_DIM
from llmd_backend_vulkan.ops.streams import MAX_STREAMS


def refusals(program: Program) -> list[Refusal]:
    """Return all reasons why the shaders cannot run a program."""
    return [*_formats(program), *_shapes(program), *_groups(program)]


def _formats(program: Program) -> Iterator[Refusal]:
    unknown = {weight.format for weight in program.weights} - set(CLAIMED_FORMATS)
    for name in sorted(unknown):
        yield Refusal(f"format {name}", f"the Vulkan backend has {', '.join(CLAIMED_FORMATS)}")


def _shapes(program: Program) -> Iterator[Refusal]:
    ops = (slotted.op for slotted in program.ops)
    yield from dict.fromkeys(refusal for op in ops for refusal in _of_op(op))  # layers are alike


def _of_op(op: Op) -> Iterator[Refusal]:
    if isinstance(op, Attention | EncoderAttention) and op.head_dim > MAX_HEAD_DIM:
        yield Refusal(f"heads of {op.head_dim} elements", f"the Vulkan backend has up to {MAX_HEAD_DIM}")
    if isinstance(op, Indexer) and op.head_dim > MAX_INDEX_DIM:
        yield Refusal(
            f"index keys of {op.head_dim} elements", f"the Vulkan backend has up to {MAX_INDEX_DIM}"
        )
    if isinstance(op, StreamWeights) and op.streams > MAX_STREAMS:
        yield Refusal(f"{op.streams} streams of hidden states", f"the Vulkan backend has up to {MAX_STREAMS}")
    if isinstance(op, Experts) and op.num_experts > MAX_EXPERTS:
        yield Refusal(f"{op.num_experts} experts of a layer", f"the Vulkan backend has up to {MAX_EXPERTS}")
    if isinstance(op, Adapt) and any(4 * math.prod(ref.view_shape) > MAX_BYTES for ref in op.tensors if ref):
        yield Refusal(
            "an adapter of very high rank", f"the Vulkan backend has matrices of up to {MAX_BYTES >> 20} MiB"
        )
    if isinstance(op, GatedDelta | StateSpace | GeneralizedDelta) and op.sizes.key_dim > MAX_KEY_DIM:
        yield Refusal(f"keys of {op.sizes.key_dim} elements", f"the Vulkan backend has up to {MAX_KEY_DIM}")


def _groups(program: Program) -> Iterator[Refusal]:
    for group in program.groups:
        if group.layers and group.kind == "paged" and group.value_dim != group.key_dim:
            what = f"keys of {group.key_dim} and values of {group.value_dim} elements"
            yield Refusal(what, "the Vulkan backend stores keys and values of equal size")
