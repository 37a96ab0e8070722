"""Load a model into a core that is ready to run: open, plan, lower, load weights, size the KV pools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from llmd.api.checks import refusals
from llmd.api.device import Device, LoadedWeights, Stage, StageLimits
from llmd.api.errors import ConfigError, UnsupportedModelError
from llmd.api.features import DRAWS
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.machine import num_processors
from llmd.api.messages import Load, Loaded, Loading, StageReport
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture
from llmd.api.program import Program
from llmd.api.quantizer import Quantizes
from llmd.engine.admission import EngineLimits
from llmd.engine.core import EngineCore
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.embedding_limits import MAX_TEXTS, EmbeddingLimits
from llmd.engine.fingerprints import kv_fingerprint, packing_fingerprint
from llmd.engine.kv_budget import KVBudget, plan_kv
from llmd.engine.kv_spool import KVSpool
from llmd.engine.pipeline import Pipeline
from llmd.engine.stages import (
    StageParts,
    flight_depth,
    most_rows,
    parts_text,
    place_parts,
    step_bytes,
)
from llmd.engine.threaded_stage import ThreadedStage
from llmd.models.arithmetic import chosen_arithmetic
from llmd.models.lowering import lower
from llmd.models.open_model import OpenModel, open_model
from llmd.models.weight_formats import conversion_notices, format_policy, weight_bytes
from llmd.models.weight_source import CheckpointSource
from llmd.registry.packed_weights import PackedWeightFiles
from llmd.registry.spools import SpoolHeader, Spools

SCORED_ROWS = 16
"""Output rows of a step for scored prompts and `EngineCore.forward`, in addition to those of drawn tokens.
Each needs memory for two rows of logits in every step in flight."""

OpenDevice = Callable[[str], Device]
ReportProgress = Callable[[Loading], None]


class LoadedModel(msgspec.Struct, frozen=True):
    """A model that is ready to run."""

    runner: EngineCore | EmbeddingCore
    loaded: Loaded
    resources: ExitStack
    """Closes everything that the model uses."""
    spool: KVSpool | None = None

    @property
    def core(self) -> EngineCore:
        """The core of a model that generates.

        Raises:
            UnsupportedModelError: the model embeds.
        """
        if not isinstance(self.runner, EngineCore):
            raise UnsupportedModelError(
                "the model embeds texts, it cannot generate",
                hint="choose a model whose architecture ends in ForCausalLM, or use this one for embeddings",
            )
        return self.runner

    def close(self) -> None:
        self.resources.close()


class _Placed(msgspec.Struct, frozen=True):
    """A stage with its weights, before the KV pools are sized."""

    spec: StageParts
    device: Device
    program: Program
    weights: LoadedWeights


def load_model(
    load: Load,
    architectures: Mapping[str, Architecture],
    open_device: OpenDevice,
    report: ReportProgress,
    spools: Spools | None = None,
    packed_files: PackedWeightFiles | None = None,
) -> LoadedModel:
    """Load a model.

    ``open_device`` opens ``auto`` or a named device. ``spools`` may have the model's prefix cache,
    ``packed_files`` its packed weights.

    Raises:
        LlmdError: the model, a device or the memory does not allow it; nothing stays allocated.
    """
    began = time.perf_counter()
    _check_options(load)
    with ExitStack() as stack:
        model = open_model(Path(load.directory), architectures, load.context_len)
        stack.callback(model.checkpoint.close)
        _check_context(model.plan)
        placed = _place(load, model, open_device, report, packed_files, stack)
        build = _generating if model.embedding is None else _embedding
        runner, budget, pipeline = build(load, model, placed, stack)
        spool = _take_spool(load, model, placed, runner, pipeline, spools)
        loaded = _describe(load, model, placed, budget, time.perf_counter() - began)
        return LoadedModel(runner, loaded, stack.pop_all(), spool)


def _take_spool(
    load: Load,
    model: OpenModel,
    placed: Sequence[_Placed],
    runner: EngineCore | EmbeddingCore,
    pipeline: Pipeline,
    spools: Spools | None,
) -> KVSpool | None:
    """Load the spool file; return None if it is switched off or a device cannot read and write blocks."""
    stages = [(one.device.info.kv_layout, one.program) for one in placed]
    if spools is None or not load.kv_spool or not isinstance(runner, EngineCore):
        return None
    if not all(layout for layout, _ in stages):
        return None
    directory = model.directory.resolve()
    header = SpoolHeader(str(directory), kv_fingerprint(directory, load.kv_dtype, stages))
    spool = KVSpool(spools.path(directory), header, runner.pager, pipeline, load.kv_spool)
    spool.load()
    return spool


def _generating(
    load: Load, model: OpenModel, placed: Sequence[_Placed], stack: ExitStack
) -> tuple[EngineCore, KVBudget, Pipeline]:
    plan = model.plan
    limits = _limits(load, plan, placed)
    budget = _budget(
        load, plan, placed, slots=load.slots, context_len=plan.context_len, chunk_len=limits.max_planned
    )
    stage_limits = StageLimits(
        max_rows=most_rows(load, model),
        max_sequences=load.slots + 1,
        max_outputs=limits.max_outputs,
        kv_dtype=load.kv_dtype,
        tickets=limits.depth,
    )
    pipeline = _build_pipeline(load, placed, budget, stage_limits, stack)
    return EngineCore(pipeline, plan.groups, budget, limits), budget, pipeline


def _embedding(
    load: Load, model: OpenModel, placed: Sequence[_Placed], stack: ExitStack
) -> tuple[EmbeddingCore, KVBudget, Pipeline]:
    plan = model.plan
    assert model.embedding is not None
    limits = EmbeddingLimits.of(plan, load.chunk_len)
    budget = _budget(load, plan, placed, slots=1, context_len=limits.kv_len, chunk_len=limits.kv_chunk_len)
    stage_limits = StageLimits(most_rows(load, model), MAX_TEXTS, max_outputs=1, kv_dtype=load.kv_dtype)
    pipeline = _build_pipeline(load, placed, budget, stage_limits, stack)
    core = EmbeddingCore(pipeline, plan.groups, budget, limits, model.embedding.poolings)
    return core, budget, pipeline


def _check_options(load: Load) -> None:
    if load.threads is not None and load.threads < 1:
        raise ConfigError(
            f"--threads {load.threads}: at least one thread is needed",
            hint="leave it out to let the device choose",
        )
    if load.context_len is not None and load.context_len < 1:
        raise ConfigError(
            f"--max-ctx {load.context_len}: the context window needs at least one token",
            hint="leave it out for the longest context that the model states",
        )


def _check_context(plan: ModelPlan) -> None:
    if plan.context_len > plan.max_context_len:
        raise ConfigError(
            f"--max-ctx {plan.context_len}: the model supports at most {plan.max_context_len} tokens",
            hint="lower --max-ctx; with a longer context, answers become meaningless",
        )


def _place(
    load: Load,
    model: OpenModel,
    open_device: OpenDevice,
    report: ReportProgress,
    packed_files: PackedWeightFiles | None,
    stack: ExitStack,
) -> list[_Placed]:
    specs = place_parts(load, model.plan)
    devices: dict[str, Device] = {}
    for spec in specs:
        if spec.device not in devices:
            devices[spec.device] = open_device(spec.device)
            stack.callback(devices[spec.device].close)
    programs = [_lower(load, model, devices[spec.device], spec) for spec in specs]
    placed = []
    for spec, program in zip(specs, programs, strict=True):
        device = devices[spec.device]
        phase = f"{parts_text(model.plan, spec.first_part, spec.last_part)} on {device.info.name}"
        packing = _packing(load, model, device, program, packed_files)
        quantizer = device.quantizer if isinstance(device, Quantizes) else None
        source = CheckpointSource(model.checkpoint, packing, quantizer)
        weights = device.load(program, source, partial(_report_progress, report, phase))
        stack.callback(weights.close)
        placed.append(_Placed(spec, device, program, weights))
    model.checkpoint.release()
    return placed


def _packing(
    load: Load, model: OpenModel, device: Device, program: Program, packed_files: PackedWeightFiles | None
) -> Path | None:
    """Return the file in which the device may keep the packed weights of a program; None: no file.

    Only weights in integer formats count: they take time to pack.
    """
    num_bytes = sum(weight_bytes(weight) for weight in program.weights if weight.format in INTEGER_FORMATS)
    if packed_files is None or not num_bytes:
        return None
    fingerprint = packing_fingerprint(model.directory, device.info.name, program)
    return packed_files.open(model.directory, fingerprint, num_bytes, load.weight_cache)


def _report_progress(report: ReportProgress, phase: str, done: int, total: int) -> None:
    report(Loading(phase, done, total))


def _lower(load: Load, model: OpenModel, device: Device, spec: StageParts) -> Program:
    formats = format_policy(model.checkpoint, device.info, load.quant)
    arithmetic = chosen_arithmetic(device.info, load.activations)
    program = lower(
        model.plan,
        spec.first_part,
        spec.last_part,
        format_of=formats,
        patterns=device.info.patterns,
        activations=arithmetic.activations,
        precision=arithmetic.precision,
    )
    reasons = [f"{refusal.what}: {refusal.reason}" for refusal in refusals(device, program)]
    if load.kv_dtype not in device.info.kv_dtypes:
        reasons.append(f"KV cache as {load.kv_dtype}: it supports {', '.join(device.info.kv_dtypes)}")
    if reasons:
        raise UnsupportedModelError(
            f"{device.info.name} cannot run {model.directory}: {'; '.join(reasons)}",
            hint="choose another device with --device; `llmd devices` lists them",
        )
    return program


def _limits(load: Load, plan: ModelPlan, placed: Sequence[_Placed]) -> EngineLimits:
    depth, micro_batches = flight_depth([one.device.info for one in placed])
    return EngineLimits(
        plan.vocab_size,
        plan.context_len,
        load.slots,
        load.slots + SCORED_ROWS,
        load.chunk_len,
        depth,
        micro_batches,
    )


def _budget(
    load: Load, plan: ModelPlan, placed: Sequence[_Placed], *, slots: int, context_len: int, chunk_len: int
) -> KVBudget:
    """Size the KV pools for ``kv_memory``, by default half of the free memory of the fullest device."""
    block_bytes = [
        sum(p.weights.kv_bytes(group.id, load.kv_dtype) for p in placed if p.program.groups[group.id].layers)
        for group in plan.groups
    ]
    free = min(p.weights.free_bytes() for p in placed)
    return plan_kv(
        plan.groups,
        block_bytes,
        slots=slots,
        context_len=context_len,
        chunk_len=chunk_len,
        budget_bytes=free // 2 if load.kv_memory is None else load.kv_memory,
    )


def _build_pipeline(
    load: Load, placed: Sequence[_Placed], budget: KVBudget, stage_limits: StageLimits, stack: ExitStack
) -> Pipeline:
    """Create the stages in order; ``stack`` closes them."""
    stages: list[Stage] = []
    kv_bytes = []
    threads = {one.device.info.name: ThreadPoolExecutor(1) for one in placed}
    for one in placed:
        blocks = {g.id: budget.num_blocks[g.id] for g in one.program.groups if g.layers}
        stage = one.weights.stage(blocks, stage_limits)
        if len(threads) > 1 and not one.device.info.queues:
            stage = ThreadedStage(stage, threads[one.device.info.name])
        stages.append(stage)
        stack.callback(stage.close)
        kv_bytes.append({group: one.weights.kv_bytes(group, load.kv_dtype) for group in blocks})
    return Pipeline(stages, kv_bytes, draws=DRAWS in placed[-1].device.info.features)


def _describe(
    load: Load, model: OpenModel, placed: Sequence[_Placed], budget: KVBudget, load_s: float
) -> Loaded:
    notices = dict.fromkeys([*model.notices, *_threads_notices(load, placed)])
    for one in placed:
        name, formats = one.device.info.name, one.device.info.formats
        notices.update(dict.fromkeys(conversion_notices(model.checkpoint, formats, load.quant, device=name)))
    return Loaded(
        architecture=model.plan.architecture,
        vocab_size=model.plan.vocab_size,
        context_len=model.plan.context_len,
        max_context_len=model.plan.max_context_len,
        num_parameters=model.checkpoint.num_parameters,
        formats=tuple(sorted({weight.format for one in placed for weight in one.program.weights})),
        stages=tuple(_report(load, model, one, budget) for one in placed),
        kv_tokens=budget.max_tokens if model.plan.groups else None,
        load_s=load_s,
        notices=tuple(notices),
        embedding=model.embedding,
    )


def _threads_notices(load: Load, placed: Sequence[_Placed]) -> list[str]:
    """Return a notice if there are more threads than processors."""
    threads, processors = load.threads or 0, num_processors()
    if threads <= processors or not any(one.device.info.uses_threads for one in placed):
        return []
    return [f"--threads {threads}: more than the {processors} available processors, so threads take turns"]


def _report(load: Load, model: OpenModel, one: _Placed, budget: KVBudget) -> StageReport:
    groups = [group.id for group in one.program.groups if group.layers]
    kv_bytes = sum(budget.num_blocks[g] * one.weights.kv_bytes(g, load.kv_dtype) for g in groups)
    weights = sum(weight_bytes(weight) for weight in one.program.weights)
    return StageReport(
        one.device.info.name,
        parts_text(model.plan, one.spec.first_part, one.spec.last_part),
        weights,
        kv_bytes,
        step_bytes(one.program, most_rows(load, model)),
    )
