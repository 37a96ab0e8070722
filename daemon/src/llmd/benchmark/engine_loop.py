"""Measures the overhead of the engine loop on a null device with a fixed step time."""

from __future__ import annotations

import time

import msgspec

from llmd.api.device import StageLimits
from llmd.api.messages import CHUNK_LEN, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVMemory, plan_kv
from llmd.engine.steps.pipeline import Pipeline
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
    idle_share: float
    """Time that the device is idle between two steps (loop time not hidden by the device), as a share of a
    step.
    """
    loop_s: float
    """CPU time of the loop per step."""
    tokens_per_s: float


def measure_loop(streams: int, sampling: SamplingParams, step_s: float, steps: int) -> LoopCost:
    """Decode ``streams`` sequences for ``steps`` steps, all of them in each step, and measure the loop."""
    warm_up = streams * PROMPT_LEN // CHUNK_LEN + 3
    core, stage = null_core(streams, step_s, PROMPT_LEN + warm_up + steps + 2)
    for request_id in range(streams):
        prompt = tuple((request_id + place) % VOCAB for place in range(PROMPT_LEN))
        core.submit(Submit(request_id, prompt, sampling, StopParams(warm_up + steps + 1)))
    for _ in range(warm_up):
        core.step()
    idle_s, cpu_s, began = stage.idle_s, time.thread_time(), time.perf_counter()
    for _ in range(steps):
        core.step()
    elapsed_s = time.perf_counter() - began
    return LoopCost(
        streams,
        step_s,
        (stage.idle_s - idle_s) / steps / step_s,
        (time.thread_time() - cpu_s) / steps,
        streams * steps / elapsed_s,
    )


def null_core(slots: int, step_s: float, context_len: int) -> tuple[EngineCore, NullStage]:
    """Return an engine core on a null device in real time, and its stage."""
    plan, device = TinyModel(context_len=context_len, vocab=VOCAB).plan(), null_device(step_s)
    limits = EngineLimits(plan.vocab_size, plan.context_len, slots, max_outputs=slots, depth=2)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    parts = device.load(program, RandomSource(), lambda _done, _total: None)
    block_bytes = tuple(parts.kv_bytes(group.id, "f32") for group in plan.groups)
    budget = plan_kv(
        plan.groups,
        [KVMemory(device.info.memory_id, block_bytes, device.free_bytes() // 2)],
        slots=slots,
        context_len=plan.context_len,
        chunk_len=limits.max_planned,
        depth=limits.depth,
    )
    blocks = {group.id: budget.num_blocks[group.id] for group in plan.groups}
    stage = parts.stage(blocks, StageLimits(slots + CHUNK_LEN, slots + 1, limits.max_outputs, "f32"))
    return EngineCore(Pipeline([stage]), plan.groups, budget, limits), stage


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
