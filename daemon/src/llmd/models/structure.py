"""What a model consists of, for people: kinds of layers, experts, and what is not loaded."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api.expert_ops import Experts
from llmd.api.latent_ops import Indexer
from llmd.api.ops import Activate, Attention, Glu
from llmd.api.plan import ModelPlan, Part
from llmd.api.state_ops import GatedDelta, StateSpace
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
    """Most positions that these layers attend to; 0 if there are none."""
    not_loaded: tuple[NotLoaded, ...]


def structure_of(plan: ModelPlan, checkpoint: Checkpoint) -> Structure:
    """Describe a model."""
    ops = [op for part in plan.parts for op in part.ops]
    attention = [op for op in ops if isinstance(op, Attention)]
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
        indexed_layers=sum(op.chosen is not None for op in attention),
        chosen_positions=max((op.top_k for op in ops if isinstance(op, Indexer)), default=0),
        not_loaded=tuple(_not_loaded(plan, checkpoint)),
    )


def _experts(plan: ModelPlan) -> Iterator[ExpertLayers]:
    alike = [found for part in plan.parts for found in _experts_of(part)]
    for kind in dict.fromkeys(alike):
        yield msgspec.structs.replace(kind, layers=alike.count(kind))


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
