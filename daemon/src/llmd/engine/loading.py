"""Load a model into a core that is ready to run: open, plan, lower, load weights, size the KV pools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from llmd.api.checks import refusals
from llmd.api.device import Device
from llmd.api.errors import ConfigError, DeviceLostError, DeviceMemoryError, UnsupportedModelError
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.kv_checks import missing_kv_dtype
from llmd.api.messages import Load, Loaded, Loading, Replanned
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture
from llmd.api.program import Program
from llmd.api.quantizer import Quantizes
from llmd.api.reports import Report
from llmd.api.results import Failed
from llmd.engine.core import EngineCore
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.fingerprints import kv_fingerprint, packing_fingerprint
from llmd.engine.kv_spool import KVSpool
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.automatic import with_devices
from llmd.engine.placement.building import build_stages
from llmd.engine.placement.candidates import MachineDevices
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.memory_use import MemoryUse
from llmd.engine.placement.memory_watch import MemoryWatch
from llmd.engine.placement.placement import PlacedStage, Placement
from llmd.engine.placement.placer import Have, Placer
from llmd.engine.placement.replanning import stages_after_loss
from llmd.engine.placement.stages import (
    StageParts,
    lower_stage,
    parts_text,
    place_parts,
    stage_limits,
)
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step_trace import Tracer
from llmd.models.open_model import OpenModel, open_model
from llmd.models.weight_source import CheckpointSource
from llmd.registry.packed_weights import PackedWeightFiles
from llmd.registry.spools import SpoolHeader, Spools

OpenDevice = Callable[[str], Device]
ReportProgress = Callable[[Loading], None]


class LoadedModel(msgspec.Struct):
    """A model that is ready to run."""

    runner: EngineCore | EmbeddingCore
    loaded: Loaded
    resources: ExitStack
    """Closes everything that the model uses."""
    placer: Placer
    watch: MemoryWatch
    spool: KVSpool | None = None
    epoch: int = 0
    """How often the model was placed again."""

    @property
    def core(self) -> EngineCore:
        """The core of a model that generates.

        Raises:
            UnsupportedModelError: the model embeds.
        """
        if not isinstance(self.runner, EngineCore):
            raise UnsupportedModelError(
                "the model embeds texts and cannot generate",
                hint="choose a model whose architecture ends in ForCausalLM, or use this one for embeddings",
            )
        return self.runner

    def report(self, *, sequences: bool = False) -> Report:
        """Return the counters of the core, and what drivers have spilled."""
        report = self.runner.report(sequences=sequences)
        return msgspec.structs.replace(report, spilled_bytes=self.watch.spilled_bytes)

    def recover(self, error: DeviceLostError | DeviceMemoryError) -> tuple[Replanned, tuple[Failed, ...]]:
        """Place the model again after a step has failed, and let its requests go on.

        The prefix cache is lost, and is not kept on disk in the end either.

        Returns:
            The new placement, and the requests for which it has no room.

        Raises:
            LlmdError: no other placement is possible. All requests are lost.
        """
        return self._go_on(self.placer.recover(error))

    def relieve(self) -> tuple[Replanned, tuple[Failed, ...]] | None:
        """If other programs have filled a memory, place the model so that it takes less; else return None.

        Returns and raises like `recover`.
        """
        memory_id = self.watch.full_memory()
        return None if memory_id is None else self._go_on(self.placer.relieve(memory_id))

    def _go_on(self, placement: Placement) -> tuple[Replanned, tuple[Failed, ...]]:
        failed = _rebuild(self.runner, placement)
        self.watch.begin()
        self.loaded = _with_notices(placement.loaded, self.placer)
        self.spool = None
        self.epoch += 1
        loaded = self.loaded
        replanned = Replanned(self.epoch, loaded.stages, loaded.kv_tokens, loaded.formats, loaded.notices)
        return replanned, failed

    def close(self) -> None:
        self.resources.close()


def load_model(
    load: Load,
    architectures: Mapping[str, Architecture],
    open_device: OpenDevice,
    report: ReportProgress,
    spools: Spools | None = None,
    packed_files: PackedWeightFiles | None = None,
    devices: MachineDevices | None = None,
    tracer: Tracer | None = None,
) -> LoadedModel:
    """Load a model.

    ``open_device`` opens ``auto`` or a named device. ``spools`` may have the model's prefix cache,
    ``packed_files`` its packed weights. ``devices`` are those to choose from if the load leaves the choice
    open or a device is lost. ``tracer`` measures the steps of a model that generates.

    Raises:
        LlmdError: the model, a device or the memory does not allow it; nothing stays allocated.
    """
    began = time.perf_counter()
    _check_options(load)
    with ExitStack() as stack:
        model = open_model(Path(load.directory), architectures, load.context_len, adapters=load.adapters)
        stack.callback(model.checkpoint.close)
        if devices:
            load = with_devices(load, model, devices)
        load, model = with_default_quant(load, model)
        _check_context(model.plan)
        load_weights = partial(_load_weights, load, model, report, packed_files)
        stages = place_parts(load, model.plan)
        replan = partial(stages_after_loss, load, model, devices)
        build = partial(build_stages, model, spans=tracer is not None)
        placer = Placer(load, stages, open_device, load_weights, build, replan)
        stack.callback(placer.close)
        placement = placer.place()
        runner = _runner(model, placement, tracer)
        spool = _take_spool(load, model, placement.stages, runner, placement.pipeline, spools)
        loaded = msgspec.structs.replace(
            _with_notices(placement.loaded, placer),
            load_s=time.perf_counter() - began,
            memories=placer.memory_reports(placement.loaded.stages),
        )
        watch = MemoryWatch(placer.memory_states)
        return LoadedModel(runner, loaded, stack.pop_all(), placer, watch, spool)


def _with_notices(loaded: Loaded, placer: Placer) -> Loaded:
    return msgspec.structs.replace(loaded, notices=(*loaded.notices, *placer.notices))


def _runner(model: OpenModel, placement: Placement, tracer: Tracer | None) -> EngineCore | EmbeddingCore:
    groups, pipeline, budget = model.plan.groups, placement.pipeline, placement.budget
    if isinstance(placement.limits, EngineLimits):
        return EngineCore(pipeline, groups, budget, placement.limits, tracer=tracer)
    assert model.embedding is not None
    return EmbeddingCore(pipeline, groups, budget, placement.limits, model.embedding.poolings)


def _rebuild(runner: EngineCore | EmbeddingCore, placement: Placement) -> tuple[Failed, ...]:
    if isinstance(runner, EmbeddingCore):
        return runner.rebuild(placement.pipeline, placement.budget)
    assert isinstance(placement.limits, EngineLimits)
    return runner.rebuild(placement.pipeline, placement.budget, placement.limits)


def _take_spool(
    load: Load,
    model: OpenModel,
    placed: Sequence[PlacedStage],
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
    header = SpoolHeader(str(directory), kv_fingerprint(directory, load.kv_dtype, stages, load.adapters))
    spool = KVSpool(spools.path(directory), header, runner.pager, pipeline, load.kv_spool)
    spool.load()
    return spool


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


def _load_weights(
    load: Load,
    model: OpenModel,
    report: ReportProgress,
    packed_files: PackedWeightFiles | None,
    specs: Sequence[StageParts],
    devices: Mapping[str, Device],
    have: Have,
    stack: ExitStack,
) -> list[PlacedStage]:
    programs = [_lower(load, model, devices[spec.device], spec) for spec in specs]
    limits = stage_limits(load, model, [device.info for device in devices.values()])
    placed = []
    for spec, program in zip(specs, programs, strict=True):
        device = devices[spec.device]
        phase = f"{parts_text(model.plan, spec.first_part, spec.last_part)} on {device.info.name}"
        packing = _packing(load, model, device, program, packed_files)
        quantizer = device.quantizer if isinstance(device, Quantizes) else None
        source = CheckpointSource(model.checkpoint, packing, quantizer, model.directory, load.adapters)
        progress = partial(_report_progress, report, phase)
        weights = device.load(program, source, progress, have.get(spec.device, ()))
        stack.callback(weights.close)
        use = MemoryUse.of(device, program, weights, limits)
        placed.append(PlacedStage(spec, device, program, weights, use))
    model.checkpoint.release()
    return placed


def _packing(
    load: Load, model: OpenModel, device: Device, program: Program, packed_files: PackedWeightFiles | None
) -> Path | None:
    """Return the file in which the device may keep the packed weights of a program; None: no file.

    Only weights in integer formats count: they take time to pack. With experts that are read when steps use
    them, there is no file: it would be as large as the model's own.
    """
    if program.expert_bytes is not None:
        return None
    num_bytes = sum(weight.num_bytes for weight in program.weights if weight.format in INTEGER_FORMATS)
    if packed_files is None or not num_bytes:
        return None
    fingerprint = packing_fingerprint(model.directory, device.info.name, program)
    return packed_files.open(model.directory, fingerprint, num_bytes, load.weight_cache)


def _report_progress(report: ReportProgress, phase: str, done: int, total: int) -> None:
    report(Loading(phase, done, total))


def _lower(load: Load, model: OpenModel, device: Device, spec: StageParts) -> Program:
    program = lower_stage(load, model, device.info, spec)
    refused = [*refusals(device, program), *missing_kv_dtype(device.info, program, load.kv_dtype)]
    reasons = [f"{refusal.what}: {refusal.reason}" for refusal in refused]
    if reasons:
        raise UnsupportedModelError(
            f"{device.info.name} cannot run {model.directory}: {'; '.join(reasons)}",
            hint="choose another device with --device; `llmd devices` lists them",
        )
    return program
