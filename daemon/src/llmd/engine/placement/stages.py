"""Splitting a model among devices, and the sizes that its stages are built for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api.checks import misplaced_integers, missing_activations, missing_features, missing_ops
from llmd.api.device import DeviceInfo, StageLimits
from llmd.api.errors import ConfigError
from llmd.api.expert_ops import Experts
from llmd.api.features import EXPERT_CACHE
from llmd.api.kv_checks import missing_kv_dtype
from llmd.api.messages import Load, StageSpec
from llmd.api.plan import ModelPlan, Part
from llmd.api.program import Program
from llmd.api.streaming import may_stream
from llmd.engine.limits import MAX_TEXTS, EmbeddingLimits
from llmd.models.arithmetic import chosen_arithmetic
from llmd.models.dependent_parts import dependent_parts
from llmd.models.lowering import lower
from llmd.models.open_model import OpenModel
from llmd.models.program_bytes import with_expert_share
from llmd.models.weight_formats import format_policy

SCORED_ROWS = 16
"""Output rows of a step for scored prompts and `EngineCore.forward`, in addition to those of drawn tokens.
Each needs memory for two rows of logits in every step in flight."""


class StageParts(msgspec.Struct, frozen=True):
    """Parts ``[first_part, last_part)`` of a plan on one device."""

    device: str
    first_part: int
    last_part: int
    streamed: tuple[int, ...] = ()
    """Parts whose weights stay in main memory, ascending (`Program.streamed`)."""


def place_parts(load: Load, plan: ModelPlan) -> tuple[StageParts, ...]:
    """Return the parts of each stage of a load, in order.

    Raises:
        ConfigError: the stages name a part that the model lacks, leave parts out or name some twice, or one
            begins with a part that depends on the device of the part before.
    """
    if not load.stages:
        return (StageParts(load.device, 0, len(plan.parts)),)
    ranges = _with_ends(plan, [_part_range(plan, spec) for spec in load.stages])
    reached = 0
    for first, last in ranges:
        if first < reached:
            raise _wrong_split(plan, f"names {parts_text(plan, first, min(reached, last))} twice")
        if first > reached:
            raise _wrong_split(plan, f"leaves out {parts_text(plan, reached, first)}")
        reached = last
    _refuse_dependent(plan, ranges)
    if reached < len(plan.parts):
        raise _wrong_split(plan, f"leaves out {parts_text(plan, reached, len(plan.parts))}")
    stages = [
        StageParts(spec.device, first, last, _layer_parts(plan, first, last) if spec.streamed else ())
        for spec, (first, last) in zip(load.stages, ranges, strict=True)
    ]
    return joined(stages) if any(stage.streamed for stage in stages) else tuple(stages)


def _refuse_dependent(plan: ModelPlan, ranges: Sequence[tuple[int, int]]) -> None:
    dependent = dependent_parts(plan)
    for first, _ in ranges:
        if first in dependent:
            raise ConfigError(
                f"--split begins a stage with {parts_text(plan, first, first + 1)}, but {dependent[first]}",
                hint="keep these parts in one stage",
            )


def _layer_parts(plan: ModelPlan, first: int, last: int) -> tuple[int, ...]:
    return tuple(part for part in range(first, last) if plan.parts[part].layer is not None)


def joined(stages: Sequence[StageParts]) -> tuple[StageParts, ...]:
    """Return the stages with neighbours on one device as one stage."""
    found: list[StageParts] = []
    for stage in stages:
        if found and found[-1].device == stage.device:
            streamed = found[-1].streamed + stage.streamed
            found[-1] = msgspec.structs.replace(found[-1], last_part=stage.last_part, streamed=streamed)
        else:
            found.append(stage)
    return tuple(found)


def first_gpu_part(plan: ModelPlan, gpu_layers: int) -> int:
    """Return the first part that runs on graphics cards if the last ``gpu_layers`` layers do.

    What follows the layers runs with them; with more layers than the model has, so does the embedding.
    """
    if gpu_layers <= 0:
        return len(plan.parts)
    if gpu_layers > plan.num_layers:
        return 0
    return plan.layer_parts(plan.num_layers - gpu_layers, plan.num_layers)[0]


def cpu_expert_parts(plan: ModelPlan, cpu_experts: int) -> frozenset[int]:
    """Return the parts that stay in main memory with the experts of that many layers."""
    parts = [
        index
        for index, part in enumerate(plan.parts)
        if part.layer is not None and any(isinstance(op, Experts) for op in part.ops)
    ]
    return frozenset(parts[:cpu_experts])


def parts_text(plan: ModelPlan, first_part: int, last_part: int) -> str:
    """Name some parts for people: ``layers 0-3``, ``layer 2.ffn``, or ``embed`` or ``head`` without layers.

    A layer that is not complete has the kind of its part.
    """
    inside = plan.parts[first_part:last_part]
    layered = [part for part in inside if part.layer is not None]
    if not layered:
        return _names(inside[0])[0]
    missing = {part.layer for part in (*plan.parts[:first_part], *plan.parts[last_part:])}
    ends = [_names(part)[part.layer in missing] for part in (layered[0], layered[-1])]
    return f"layer {ends[0]}" if ends[0] == ends[1] else f"layers {'-'.join(ends)}"


def part_names(plan: ModelPlan, first_part: int, last_part: int) -> tuple[str, ...]:
    """Name some parts as `StageSpec` does: a whole layer by its number, else each of its parts."""
    missing = {part.layer for part in (*plan.parts[:first_part], *plan.parts[last_part:])}
    inside = plan.parts[first_part:last_part]
    return tuple(
        dict.fromkeys(_names(part)[part.layer is not None and part.layer in missing] for part in inside)
    )


def _part_range(plan: ModelPlan, spec: StageSpec) -> tuple[int, int]:
    """Return the range of the parts that a stage names."""
    first, last = (
        [index for index, part in enumerate(plan.parts) if name in _names(part)]
        for name in (spec.first, spec.last)
    )
    for name, found in ((spec.first, first), (spec.last, last)):
        if not found:
            raise _wrong_split(plan, f"names {name}, which the model lacks")
    if last[-1] < first[0]:
        raise _wrong_split(plan, f"names {spec.first}-{spec.last}, which ends before it begins")
    return first[0], last[-1] + 1


def _with_ends(plan: ModelPlan, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add what is before the layers to a first stage without it, and what is after them to a last stage."""
    first, last = plan.layer_parts(0, plan.num_layers)
    if ranges[0][0] == first:
        ranges[0] = (0, ranges[0][1])
    if ranges[-1][1] == last:
        ranges[-1] = (ranges[-1][0], len(plan.parts))
    return ranges


def _names(part: Part) -> tuple[str, ...]:
    """Return the names of a part in `StageSpec`: the first is that of its whole layer."""
    if part.layer is None:
        return ("embed" if part.kind == "embed" else "head",)
    return (str(part.layer), f"{part.layer}.{part.kind}")


def _wrong_split(plan: ModelPlan, fault: str) -> ConfigError:
    return ConfigError(
        f"--split {fault}",
        hint=f"name the layers 0-{plan.num_layers - 1} in order, each once, with embed before and head after"
        " if they have other devices",
    )


def lower_stage(load: Load, model: OpenModel, info: DeviceInfo, spec: StageParts) -> Program:
    """Return the program of a stage, in the formats and the arithmetic that the load asks of the device."""
    arithmetic = chosen_arithmetic(info, load.activations)
    program = lower(
        model.plan,
        spec.first_part,
        spec.last_part,
        format_of=format_policy(model.checkpoint, info, load.quant),
        patterns=info.patterns,
        activations=arithmetic.activations,
        precision=arithmetic.precision,
        streamed=spec.streamed,
    )
    return with_expert_share(program, load.expert_share) if caches_experts(load, info) else program


def caches_experts(load: Load, info: DeviceInfo) -> bool:
    """Whether a device may have only some experts of a model in memory.

    One with a memory of its own must have the whole model: else experts that have no room there are placed on
    other devices.
    """
    is_alone = len({one.device for one in load.stages}) <= 1
    return EXPERT_CACHE in info.features and (is_alone or not may_stream(info))


def refuses(load: Load, info: DeviceInfo, program: Program) -> bool:
    """Whether a device says that it cannot run a program, as far as that is known before it is opened."""
    checks = (missing_features, missing_ops, missing_activations, misplaced_integers)
    return bool(missing_kv_dtype(info, program, load.kv_dtype)) or any(
        check(info, program) for check in checks
    )


def flight_depth(devices: Sequence[DeviceInfo]) -> tuple[int, int]:
    """Return the steps in flight and the micro-batches for stages on these devices.

    Several stages work on as many steps at once, each with a share of the sequences. A single stage runs all
    sequences in each step; if its device queues steps, the next step is there before the device needs it.
    """
    count = len({device.name for device in devices})
    if count > 1:
        return count, count
    return (2 if devices[0].queues else 1), 1


def stage_limits(load: Load, model: OpenModel, devices: Sequence[DeviceInfo]) -> StageLimits:
    """Return the sizes that every stage of the model is built for; ``devices`` are those of the stages."""
    if model.embedding is None:
        rows, outputs = load.slots + load.chunk_len, load.slots + SCORED_ROWS
        depth, _ = flight_depth(devices)
        sequences, adapters = load.slots + 1, len(load.adapters)
        return StageLimits(rows, sequences, outputs, load.kv_dtype, tickets=depth, max_adapters=adapters)
    rows = EmbeddingLimits.of(model.plan, load.chunk_len).max_rows
    return StageLimits(rows, MAX_TEXTS, max_outputs=1, kv_dtype=load.kv_dtype)
