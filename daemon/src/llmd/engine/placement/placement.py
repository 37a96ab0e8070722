"""A model on its devices, ready to run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api.device import Device, LoadedWeights
from llmd.api.messages import Loaded
from llmd.api.program import Program
from llmd.engine.limits import EmbeddingLimits, EngineLimits
from llmd.engine.placement.kv_budget import KVBudget
from llmd.engine.placement.memory_use import MemoryUse
from llmd.engine.placement.stages import StageParts
from llmd.engine.steps.pipeline import Pipeline


class PlacedStage(msgspec.Struct, frozen=True):
    """A stage with its weights, before the KV pools are sized."""

    spec: StageParts
    device: Device
    program: Program
    weights: LoadedWeights
    use: MemoryUse


class Placement(msgspec.Struct, frozen=True):
    """All stages with their KV pools."""

    stages: Sequence[PlacedStage]
    limits: EngineLimits | EmbeddingLimits
    budget: KVBudget
    pipeline: Pipeline
    loaded: Loaded
    """What the front is told of it."""
