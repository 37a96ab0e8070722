"""Measures the overhead of the engine loop: on a null device with a fixed step time, or with a real model."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from llmd.api.device import Device, LoadedWeights, Stage, StageLimits
from llmd.api.features import DRAWS, SPANS
from llmd.api.kv import KVDtype
from llmd.api.messages import CHUNK_LEN, StopParams, Submit
from llmd.api.plan import ModelPlan
from llmd.api.samplers import SamplingParams
from llmd.api.step import BLOCK_LEN
from llmd.engine.core import EngineCore
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVMemory, plan_kv
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step_trace import TracedStep, Tracer
from llmd.models.lowering import lower
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource

PROMPT_LEN = 20
VOCAB = 32_000
SPIN_S = 0.0004


class LoopCost(msgspec.Struct, frozen=True):
    """The cost of the engine loop for one load."""

    streams: int
    step_s: float
    """Time that the device takes for a step, or that a step takes with a real model."""
    idle_share: float | None
    """Time that the device is idle between two steps (loop time not hidden by the device), as a share of a
    step. Of several stages, the mean. None: the devices do not say when they work.
    """
    loop_s: float
    """CPU time of the loop's thread per step. A device may compute on that thread."""
    tokens_per_s: float


def measure_loop(
    streams: int, sampling: SamplingParams, step_s: float, steps: int, tracer: Tracer | None = None
) -> LoopCost:
    """Decode ``streams`` sequences for ``steps`` steps, all of them in each step, and measure the loop.

    ``tracer`` keeps the steps that are measured.
    """
    # The scheduler starts a sequence only if a block is left for those that run.
    context_len = PROMPT_LEN + _warm_up_steps(streams) + steps + 2 + BLOCK_LEN
    core, stage = null_core(streams, step_s, context_len, tracer)
    _start(core, streams, sampling, steps, VOCAB)
    idle_s = stage.idle_s
    elapsed_s, loop_s, tokens = _run(core, steps, tracer)
    return LoopCost(streams, step_s, (stage.idle_s - idle_s) / steps / step_s, loop_s, tokens / elapsed_s)


def measure_model(
    core: EngineCore, vocab: int, streams: int, sampling: SamplingParams, steps: int, tracer: Tracer
) -> LoopCost:
    """Do the same with a loaded model, whose slots are at least ``streams`` and whose steps ``tracer`` keeps.

    Raises:
        LlmdError: the context is too short, a device failed, or the memory for keys and values is too small.
    """
    _start(core, streams, sampling, steps, vocab)
    elapsed_s, loop_s, tokens = _run(core, steps, tracer)
    for request_id in range(streams):
        core.cancel(request_id)
    return LoopCost(streams, elapsed_s / steps, idle_share(tracer.steps), loop_s, tokens / elapsed_s)


def idle_share(steps: Iterable[TracedStep]) -> float | None:
    """Return for which share of the time of steps the devices did not compute: the mean of their stages."""
    traced = list(steps)
    of_stages = [
        sorted((span.start_s, span.end_s) for spans in stage for span in spans if span.kind == "device")
        for stage in zip(*(step.stages for step in traced), strict=True)
    ]
    shares = [
        1 - sum(end_s - start_s for start_s, end_s in spans) / (spans[-1][1] - spans[0][0])
        for spans in of_stages
        if len(spans) > 1
    ]
    return sum(shares) / len(shares) if shares else None


def _warm_up_steps(streams: int) -> int:
    return streams * PROMPT_LEN // CHUNK_LEN + 3


def _start(core: EngineCore, streams: int, sampling: SamplingParams, steps: int, vocab: int) -> None:
    """Start the sequences, and run steps until all decode."""
    warm_up = _warm_up_steps(streams)
    for request_id in range(streams):
        prompt = tuple((request_id + place) % vocab for place in range(PROMPT_LEN))
        core.submit(Submit(request_id, prompt, sampling, StopParams(warm_up + steps + 1)))
    for _ in range(warm_up):
        core.step()


def _run(core: EngineCore, steps: int, tracer: Tracer | None) -> tuple[float, float, int]:
    """Run steps; return the seconds of all, the CPU time of this thread for one, and the number of tokens."""
    if tracer is not None:
        tracer.steps.clear()
    cpu_s, began = time.thread_time(), time.perf_counter()
    tokens = sum(len(core.step().tokens) for _ in range(steps))
    elapsed_s = time.perf_counter() - began
    return elapsed_s, (time.thread_time() - cpu_s) / steps, tokens


def null_core(
    slots: int, step_s: float, context_len: int, tracer: Tracer | None = None
) -> tuple[EngineCore, NullStage]:
    """Return an engine core on a null device in real time, and its stage. ``tracer`` measures its steps."""
    plan, device = TinyModel(context_len=context_len, vocab=VOCAB).plan(), null_device(step_s)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    weights = device.load(program, RandomSource(), lambda _done, _total: None)
    core, stage = build_core(device, plan, weights, slots, kv_dtype="f32", tracer=tracer)
    assert isinstance(stage, NullStage)
    return core, stage


def build_core(
    device: Device,
    plan: ModelPlan,
    weights: LoadedWeights,
    slots: int,
    *,
    kv_dtype: KVDtype = "f16",
    tracer: Tracer | None = None,
) -> tuple[EngineCore, Stage]:
    """Return an engine core for loaded weights of a whole model, and its stage. ``tracer`` measures steps, if
    the device keeps their times.
    """
    limits = EngineLimits(plan.vocab_size, plan.context_len, slots, max_outputs=slots, depth=2)
    block_bytes = tuple(weights.kv_bytes(group.id, kv_dtype) for group in plan.groups)
    budget = plan_kv(
        plan.groups,
        [KVMemory(device.info.memory_id, block_bytes, device.free_bytes() // 2)],
        slots=slots,
        context_len=plan.context_len,
        chunk_len=limits.max_planned,
        depth=limits.depth,
    )
    blocks = {group.id: budget.num_blocks[group.id] for group in plan.groups}
    keeps_spans = tracer is not None and SPANS in device.info.features
    sizes = StageLimits(slots + CHUNK_LEN, slots + 1, limits.max_outputs, kv_dtype, spans=keeps_spans)
    stage = weights.stage(blocks, sizes)
    pipeline = Pipeline([stage], draws=DRAWS in device.info.features, spans=[keeps_spans])
    return EngineCore(pipeline, plan.groups, budget, limits, tracer=tracer), stage


def null_device(step_s: float) -> NullDevice:
    """Return a null device in real time."""
    return NullDevice(time.perf_counter, step_s=step_s, pause=pause, memory_bytes=4 << 30)


def pause(seconds: float) -> None:
    """Wait precisely: a sleep overruns by more than the measured costs."""
    end = time.perf_counter() + seconds
    if seconds > SPIN_S:
        time.sleep(seconds - SPIN_S)
    while time.perf_counter() < end:
        pass
