"""Size the KV pools of loaded weights, and create the stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import DeviceInfo, LoadedWeights, Stage, StageLimits
from llmd.api.expert_cache import CachesExperts, ExpertCacheUse
from llmd.api.features import DRAWS, KERNELS, SPANS
from llmd.api.kernel_use import KernelUse, NamesKernels
from llmd.api.machine import num_processors
from llmd.api.messages import Load, Loaded, StageReport
from llmd.api.plan import ModelPlan
from llmd.engine.limits import EmbeddingLimits, EngineLimits
from llmd.engine.placement.kv_budget import KVBudget, kv_memories, plan_kv
from llmd.engine.placement.memory_use import pool_bytes
from llmd.engine.placement.placement import PlacedStage, Placement
from llmd.engine.placement.stages import (
    SCORED_ROWS,
    flight_depth,
    part_names,
    parts_text,
    stage_limits,
)
from llmd.engine.step_reads import dense_reads, expert_reads
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.threaded_stage import ThreadedStage
from llmd.models.open_model import OpenModel
from llmd.models.program_bytes import absent_bytes, expert_bytes
from llmd.models.weight_formats import conversion_notices


def build_stages(
    model: OpenModel, load: Load, placed: Sequence[PlacedStage], stack: ExitStack, *, spans: bool = False
) -> Placement:
    """Size the KV pools and create the stages; ``stack`` closes them. With ``spans``, devices that can keep
    the times of their steps (`Stage.spans`).

    Raises:
        MemoryBudgetError: there is not enough memory for step buffers and the smallest KV pools.
    """
    build = _generating if model.embedding is None else _embedding
    limits, budget, pipeline = build(load, model, placed, stack, spans=spans)
    return Placement(placed, limits, budget, pipeline, _describe(load, model, placed, budget))


def _generating(
    load: Load, model: OpenModel, placed: Sequence[PlacedStage], stack: ExitStack, *, spans: bool
) -> tuple[EngineLimits, KVBudget, Pipeline]:
    plan = model.plan
    limits = _limits(load, plan, placed)
    budget = _budget(
        load,
        plan,
        placed,
        slots=load.slots,
        context_len=plan.context_len,
        chunk_len=limits.max_planned,
        depth=limits.depth,
    )
    limits_of_stages = stage_limits(load, model, _infos(placed))
    pipeline = _build_pipeline(placed, budget, limits_of_stages, stack, spans=spans)
    return limits, budget, pipeline


def _embedding(
    load: Load, model: OpenModel, placed: Sequence[PlacedStage], stack: ExitStack, *, spans: bool
) -> tuple[EmbeddingLimits, KVBudget, Pipeline]:
    plan = model.plan
    limits = EmbeddingLimits.of(plan, load.chunk_len)
    budget = _budget(load, plan, placed, slots=1, context_len=limits.kv_len, chunk_len=limits.kv_chunk_len)
    limits_of_stages = stage_limits(load, model, _infos(placed))
    pipeline = _build_pipeline(placed, budget, limits_of_stages, stack, spans=spans)
    return limits, budget, pipeline


def _infos(placed: Sequence[PlacedStage]) -> list[DeviceInfo]:
    return [one.device.info for one in placed]


def _limits(load: Load, plan: ModelPlan, placed: Sequence[PlacedStage]) -> EngineLimits:
    depth, micro_batches = flight_depth(_infos(placed))
    return EngineLimits(
        plan.vocab_size,
        plan.context_len,
        load.slots,
        load.slots + SCORED_ROWS,
        load.chunk_len,
        depth,
        micro_batches,
        adapters=tuple(load.adapters),
    )


def _budget(
    load: Load,
    plan: ModelPlan,
    placed: Sequence[PlacedStage],
    *,
    slots: int,
    context_len: int,
    chunk_len: int,
    depth: int = 1,
) -> KVBudget:
    return plan_kv(
        plan.groups,
        kv_memories(load, [(one.device, one.use) for one in placed]),
        slots=slots,
        context_len=context_len,
        chunk_len=chunk_len,
        depth=depth,
        total_bytes=load.kv_memory,
    )


def _build_pipeline(
    placed: Sequence[PlacedStage], budget: KVBudget, limits: StageLimits, stack: ExitStack, *, spans: bool
) -> Pipeline:
    """Create the stages in order; ``stack`` closes them.

    Stages of several devices say when they worked on a step, also without ``spans``: those on a thread do
    so at no cost.
    """
    stages: list[Stage] = []
    kv_bytes, keep_spans, kernels = [], list[bool](), list[Callable[[], KernelUse]]()
    threads = {one.device.info.name: ThreadPoolExecutor(1) for one in placed}
    for thread in threads.values():
        stack.callback(thread.shutdown, wait=False)
    for one in placed:
        groups = [group.id for group in one.program.groups if group.layers]
        info = one.device.info
        is_threaded = len(threads) > 1 and not info.queues
        keeps = SPANS in info.features and (spans or (len(threads) > 1 and not is_threaded))
        its_limits = msgspec.structs.replace(limits, spans=keeps)
        stage = one.weights.stage({group: budget.num_blocks[group] for group in groups}, its_limits)
        if KERNELS in info.features and isinstance(stage, NamesKernels):
            kernels.append(stage.kernels)
        else:
            kernels.append(KernelUse)
        if is_threaded:
            stage = ThreadedStage(stage, threads[info.name], info.name, spans=keeps)
        keep_spans.append(keeps or is_threaded)
        stages.append(stage)
        stack.callback(stage.close)
        kv_bytes.append({group: one.use.block_bytes[group] for group in groups})
    draws = DRAWS in placed[-1].device.info.features
    return Pipeline(
        stages,
        kv_bytes,
        draws=draws,
        spans=keep_spans,
        kernels=lambda: tuple(one() for one in kernels),
        expert_cache=partial(_expert_cache_use, [one.weights for one in placed]),
    )


def _expert_cache_use(weights: Sequence[LoadedWeights]) -> ExpertCacheUse | None:
    uses = (one.expert_cache() for one in weights if isinstance(one, CachesExperts))
    return ExpertCacheUse.sum(use for use in uses if use is not None)


def _describe(load: Load, model: OpenModel, placed: Sequence[PlacedStage], budget: KVBudget) -> Loaded:
    notices = dict.fromkeys([*model.notices, *_threads_notices(load, placed)])
    for one in placed:
        name, formats = one.device.info.name, one.device.info.formats
        notices.update(dict.fromkeys(conversion_notices(model.checkpoint, formats, load.quant, device=name)))
    notices.update(dict.fromkeys(_expert_notices(placed)))
    return Loaded(
        architecture=model.plan.architecture,
        vocab_size=model.plan.vocab_size,
        context_len=model.plan.context_len,
        max_context_len=model.plan.max_context_len,
        num_parameters=model.checkpoint.num_parameters,
        formats=tuple(sorted({weight.format for one in placed for weight in one.program.weights})),
        stages=tuple(_report(model.plan, one, budget) for one in placed),
        kv_tokens=budget.max_tokens if model.plan.groups else None,
        load_s=0.0,
        notices=tuple(notices),
        embedding=model.embedding,
    )


def _expert_notices(placed: Sequence[PlacedStage]) -> list[str]:
    """Return a notice if only some experts are in memory."""
    programs = [one.program for one in placed]
    absent = sum(map(absent_bytes, programs))
    if not absent:
        return []
    whole = sum(map(expert_bytes, programs))
    room = f"{format_bytes(whole - absent)} of the {format_bytes(whole)} of experts"
    cards = [one.device.info.name for one in placed if one.use.main_memory_expert_bytes]
    if cards:
        return [f"the memory of {cards[0]} has room for {room}: steps read the others from main memory"]
    return [f"memory has room for {room}: the others are read from the model's files when steps use them"]


def _threads_notices(load: Load, placed: Sequence[PlacedStage]) -> list[str]:
    """Return a notice if there are more threads than processors."""
    threads, processors = load.threads or 0, num_processors()
    if threads <= processors or not any(one.device.info.uses_threads for one in placed):
        return []
    return [f"--threads {threads}: more than the {processors} available processors, so threads take turns"]


def _report(plan: ModelPlan, one: PlacedStage, budget: KVBudget) -> StageReport:
    parts = plan.parts[one.spec.first_part : one.spec.last_part]
    layers = [part.layer for part in parts if part.layer is not None]
    return StageReport(
        one.device.info.name,
        parts_text(plan, one.spec.first_part, one.spec.last_part),
        one.use.weight_bytes,
        pool_bytes(budget.num_blocks, one.use.block_bytes),
        one.use.step_bytes,
        one.use.memory_id,
        first=layers[0] if layers else 0,
        last=layers[-1] + 1 if layers else 0,
        read_bytes=dense_reads(one.program),
        experts=expert_reads(one.program),
        part_names=part_names(plan, one.spec.first_part, one.spec.last_part),
        streamed_bytes=one.use.streamed_bytes,
        absent_bytes=absent_bytes(one.program),
        main_memory_expert_bytes=one.use.main_memory_expert_bytes,
    )
