"""A model on its devices, ready to run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api.device import Device, LoadedWeights
from llmd.api.messages import Loaded
from llmd.api.program import Program
from llmd.engine.admission import EngineLimits
from llmd.engine.embedding_limits import EmbeddingLimits
from llmd.engine.kv_budget import KVBudget
from llmd.engine.memory_use import MemoryUse
from llmd.engine.pipeline import Pipeline
from llmd.engine.stages import StageParts


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
