"""Estimate the memory that a model needs on its devices, from headers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from llmd.api.device import DeviceInfo
from llmd.api.errors import MemoryBudgetError
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture
from llmd.api.program import Program
from llmd.engine.embedding_limits import EmbeddingLimits
from llmd.engine.kv_budget import plan_kv
from llmd.engine.stages import StageParts, most_rows, place_parts, step_bytes
from llmd.models.arithmetic import chosen_arithmetic
from llmd.models.lowering import lower
from llmd.models.open_model import OpenModel, open_model
from llmd.models.weight_formats import format_policy, weight_bytes

LEAST_KV_TOKENS = 2048
"""Smallest useful KV capacity: a model with less is not worth loading."""


class MemoryNeed(msgspec.Struct, frozen=True):
    """Bytes that a model needs."""

    weight_bytes: int
    """Weights in the formats of their devices."""
    kv_bytes: int
    """The KV pool that was asked for, or else the smallest useful one."""
    most_kv_bytes: int
    """A KV pool for all slots at full context."""
    step_bytes: int = 0
    """Buffers for the rows of a step."""

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.step_bytes


def memory_need(
    load: Load, architectures: Mapping[str, Architecture], device: Callable[[str], DeviceInfo]
) -> MemoryNeed:
    """Estimate what a load would need. ``device`` returns the device for ``auto`` or a name.

    Raises:
        LlmdError: the model cannot be loaded on these devices.
    """
    model = open_model(Path(load.directory), architectures, load.context_len)
    try:
        specs = place_parts(load, model.plan)
        programs = [_program(load, model, device(spec.device), spec) for spec in specs]
    finally:
        model.checkpoint.close()
    slots, most_len, chunk_len = load.slots, model.plan.context_len, load.chunk_len
    if model.embedding is not None:
        limits = EmbeddingLimits.of(model.plan, load.chunk_len)
        slots, most_len, chunk_len = 1, limits.kv_len, limits.kv_chunk_len
    most = _kv_bytes(load, model.plan, slots, most_len, chunk_len)
    least = _kv_bytes(load, model.plan, 1, min(most_len, LEAST_KV_TOKENS), chunk_len)
    asked = least if load.kv_memory is None else min(load.kv_memory, most)
    weights = sum(weight_bytes(weight) for program in programs for weight in program.weights)
    rows = most_rows(load, model)
    return MemoryNeed(weights, asked, most, sum(step_bytes(program, rows) for program in programs))


def _program(load: Load, model: OpenModel, info: DeviceInfo, spec: StageParts) -> Program:
    formats = format_policy(model.checkpoint, info, load.quant)
    arithmetic = chosen_arithmetic(info, load.activations)
    return lower(
        model.plan,
        spec.first_part,
        spec.last_part,
        format_of=formats,
        patterns=info.patterns,
        activations=arithmetic.activations,
        precision=arithmetic.precision,
    )


def _kv_bytes(load: Load, plan: ModelPlan, slots: int, context_len: int, chunk_len: int) -> int:
    """Return the bytes of KV pools for ``slots`` sequences of ``context_len`` tokens."""
    block_bytes = [kv_block_bytes(group, load.kv_dtype) for group in plan.groups]
    try:
        budget = plan_kv(
            plan.groups,
            block_bytes,
            slots=slots,
            context_len=context_len,
            chunk_len=chunk_len,
            budget_bytes=1 << 62,
        )
    except MemoryBudgetError:  # beyond any machine
        return 1 << 62
    return budget.total_bytes
