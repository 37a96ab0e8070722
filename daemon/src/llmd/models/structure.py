"""What a model consists of, for people: kinds of layers, experts, and what is not loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from llmd.api.expert_ops import Experts
from llmd.api.latent_ops import Indexer
from llmd.api.ops import Activate, Attention, Glu
from llmd.api.plan import ModelPlan, Part
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.api.stream_ops import MixStreams
from llmd.api.time_mix_ops import GeneralizedDelta
from llmd.models.checkpoint import Checkpoint
from llmd.models.plan_check import left_out_tensors


class ExpertLayers(msgspec.Struct, frozen=True):
    """Layers whose experts are alike."""

    layers: int
    """How many there are."""
    experts: int
    """Experts of a layer, of which each token uses some."""
    active: int
    """Experts that a token uses."""
    has_shared: bool
    """Whether a layer also has an expert that all tokens use."""


class VectorLayers(msgspec.Struct, frozen=True):
    """Layers whose attention sees distant tokens as one vector for several."""

    layers: int
    """How many there are."""
    tokens: int
    """Tokens for each vector."""


class NotLoaded(msgspec.Struct, frozen=True):
    """Tensors of the files that the model does not need to generate text."""

    what: str
    """What they are for."""
    is_draft: bool
    """Whether they predict further tokens (`LeftOut.is_draft`)."""
    tensors: int
    """Number of tensors in the files."""
    size_bytes: int
    """Stored size."""


class Structure(msgspec.Struct, frozen=True):
    """What a model consists of."""

    layers: int
    experts: tuple[ExpertLayers, ...]
    attention_layers: int
    """Layers of attention, of any kind but linear attention."""
    window_layers: int
    """Layers whose attention is limited to the last positions."""
    window: int
    """Most positions that these layers attend to; 0 if there are none."""
    latent_layers: int
    """Layers whose attention keeps latent vectors in place of keys and values."""
    borrowing_layers: int
    """Layers whose attention reads the keys and values of other layers."""
    linear_layers: int
    """Layers of linear attention."""
    space_layers: int
    """Layers of state spaces."""
    sink_layers: int
    """Layers whose attention has sinks."""
    indexed_layers: int
    """Layers whose attention is limited to positions that an indexer chooses."""
    chosen_positions: int
    """Most positions, or vectors for several, that these layers attend to; 0 if there are none."""
    vectors: tuple[VectorLayers, ...]
    """Layers with vectors for several tokens, by their number of tokens."""
    streams: int
    """Residual streams; 1: residual connections are sums."""
    not_loaded: tuple[NotLoaded, ...]


def structure_of(plan: ModelPlan, checkpoint: Checkpoint) -> Structure:
    """Describe a model."""
    ops = [op for part in plan.parts for op in part.ops]
    attention = [found[0] for part in plan.parts if (found := _attention_of(part))]
    groups = [plan.groups[op.group] for op in attention]
    windows = [group.window for group in groups if group.window is not None]
    return Structure(
        layers=plan.num_layers,
        experts=tuple(_experts(plan)),
        attention_layers=len(attention),
        window_layers=len(windows),
        window=max(windows, default=0),
        latent_layers=sum(group.kind == "latent" for group in groups),
        borrowing_layers=sum(op.k is None for op in attention),
        linear_layers=sum(isinstance(op, GatedDelta | GeneralizedDelta) for op in ops),
        space_layers=sum(isinstance(op, StateSpace) for op in ops),
        sink_layers=sum(op.sinks is not None for op in attention),
        indexed_layers=sum(isinstance(op, Attention) and op.chosen is not None for op in ops),
        chosen_positions=max((op.top_k for op in ops if isinstance(op, Indexer)), default=0),
        vectors=tuple(_vectors(plan)),
        streams=max((op.streams for op in ops if isinstance(op, MixStreams)), default=1),
        not_loaded=tuple(_not_loaded(plan, checkpoint)),
    )


def _experts(plan: ModelPlan) -> Iterator[ExpertLayers]:
    alike = [found for part in plan.parts for found in _experts_of(part)]
    for kind in dict.fromkeys(alike):
        yield msgspec.structs.replace(kind, layers=alike.count(kind))


def _attention_of(part: Part) -> list[Attention]:
    """Return the attention of a layer; the first one, if it sees near tokens and vectors apart, is to near
    tokens.
    """
    return [op for op in part.ops if isinstance(op, Attention)]


def _vectors(plan: ModelPlan) -> Iterator[VectorLayers]:
    ops = (op for part in plan.parts for op in part.ops if isinstance(op, Attention))
    strides = Counter(plan.groups[op.group].stride for op in ops)
    yield from (VectorLayers(count, stride) for stride, count in sorted(strides.items()) if stride > 1)


def _experts_of(part: Part) -> Iterator[ExpertLayers]:
    has_shared = any(isinstance(op, Glu | Activate) for op in part.ops)
    for op in part.ops:
        if isinstance(op, Experts):
            yield ExpertLayers(1, op.num_experts, op.top_k, has_shared)


def _not_loaded(plan: ModelPlan, checkpoint: Checkpoint) -> Iterator[NotLoaded]:
    for left_out, tensors in left_out_tensors(plan, checkpoint):
        yield NotLoaded(
            left_out.what,
            left_out.is_draft,
            sum(len(tensor.stored) for tensor in tensors),
            sum(tensor.size_bytes for tensor in tensors),
        )
