"""Engine cores on the small model, built without a model directory."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from llmd.api import Device, StageLimits
from llmd.api.features import DRAWS
from llmd.api.messages import CHUNK_LEN, StopParams, Submit
from llmd.api.plan import KVGroup, ModelPlan
from llmd.api.results import TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.core import EngineCore
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVBudget, KVMemory, plan_kv
from llmd.engine.placement.stages import SCORED_ROWS
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step_trace import Tracer
from llmd.models.lowering import lower
from llmd.scheduler.proposer import Proposer
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.golden.models.catalog import tiny_model

SMALL = TinyModel()
HYBRID_MIXTURE = TinyModel(hybrid=True, states="matrices", experts=9)
"""A model as those that people run: states in half of the layers, and experts in all."""


class FamilyModel(msgspec.Struct, frozen=True):
    """A tiny golden model with other, random weights."""

    name: str
    context_len: int = 512

    def plan(self) -> ModelPlan:
        """Return the plan."""
        config = tiny_model(self.name).config
        (wanted,) = config["architectures"]
        family = next(found for found in llmd_architectures() if wanted in found.names)
        return family.plan({**config, "max_position_embeddings": self.context_len}, self.context_len)


CHOOSING = FamilyModel("glm-moe-dsa-shared")
"""A GLM-5.2: rows attend to 9 positions, and layers share them."""

COMPRESSED = FamilyModel("deepseek-v4")
"""A DeepSeek-V4: distant tokens are one vector for 4 or 16 of them."""

STEPS_IN_FLIGHT = (
    pytest.param((1, False), id="one step", marks=pytest.mark.exhaustive),
    pytest.param((2, False), id="two steps"),
    pytest.param((4, True), id="four steps, device draws"),
)
"""How many steps are in flight, and whether the device draws the tokens: all ways to run an engine."""


class Parts(NamedTuple):
    """What a core is made of, in this order."""

    pipeline: Pipeline
    groups: tuple[KVGroup, ...]
    budget: KVBudget
    limits: EngineLimits


def make_core(
    device: Device, *, proposer: Proposer | None = None, tracer: Tracer | None = None, **options: Any
) -> EngineCore:
    """A core on one device; options as for `make_parts`. A device of a traced core keeps times of steps."""
    devices = [device] * (1 + len(options.get("cuts", ())))
    parts = make_parts(devices, spans=tracer is not None, **options)
    return EngineCore(*parts, proposer, tracer=tracer)


def make_parts(
    devices: Sequence[Device],
    *,
    depth: int,
    slots: int = 4,
    cuts: tuple[int, ...] = (),
    budget_bytes: int = 1 << 30,
    context_len: int = 512,
    chunk_len: int = CHUNK_LEN,
    draws: bool = True,
    max_drafts: int = 0,
    model: TinyModel | FamilyModel = SMALL,
    spans: bool = False,
) -> Parts:
    """Build a stage on each device; ``cuts`` are part numbers where a new one begins.

    ``depth`` is the most steps in flight.
    """
    plan = msgspec.structs.replace(model, context_len=context_len).plan()
    outputs = slots * (1 + max_drafts) + SCORED_ROWS
    limits = EngineLimits(
        plan.vocab_size,
        plan.context_len,
        slots,
        outputs,
        chunk_len,
        depth,
        depth if cuts else 1,
        max_drafts,
    )
    most_rows = slots * (1 + max_drafts) + chunk_len
    stage_limits = StageLimits(most_rows, slots + 1, outputs, "f32", tickets=depth, spans=spans)
    bounds = (0, *cuts, len(plan.parts))
    programs = [
        lower(plan, first, last, format_of=lambda _kind, _ref: "f32", patterns=device.info.patterns)
        for device, (first, last) in zip(devices, itertools.pairwise(bounds), strict=True)
    ]
    parts = [
        device.load(program, RandomSource(), lambda _done, _total: None)
        for device, program in zip(devices, programs, strict=True)
    ]
    block_bytes = tuple(sum(p.kv_bytes(g.id, "f32") for p in parts) for g in plan.groups)
    budget = plan_kv(
        plan.groups,
        [KVMemory(devices[0].info.memory_id, block_bytes, budget_bytes)],
        slots=slots,
        context_len=plan.context_len,
        chunk_len=limits.max_planned,
        depth=limits.depth,
    )
    stages = [
        p.stage({g.id: budget.num_blocks[g.id] for g in program.groups if g.layers}, stage_limits)
        for p, program in zip(parts, programs, strict=True)
    ]
    kv_bytes = [
        {g.id: p.kv_bytes(g.id, "f32") for g in program.groups if g.layers}
        for p, program in zip(parts, programs, strict=True)
    ]
    draws = draws and DRAWS in devices[-1].info.features
    pipeline = Pipeline(stages, kv_bytes, draws=draws, spans=[spans] * len(stages))
    return Parts(pipeline, plan.groups, budget, limits)


def prompt(seed: int, length: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(0, TinyModel().vocab, length).tolist())


def submit(
    request_id: int,
    length: int,
    max_tokens: int = 12,
    temperature: float = 0.0,
    output: tuple[int, ...] = (),
    logprobs: int | None = None,
    stop_ids: tuple[int, ...] = (),
    logprob_ids: tuple[int, ...] = (),
) -> Submit:
    sampling = SamplingParams(
        seed=request_id, temperature=temperature, logprobs=logprobs, logprob_ids=logprob_ids
    )
    stop = StopParams(max_tokens=max_tokens, stop_ids=stop_ids)
    return Submit(request_id, prompt(request_id, length), sampling, stop, output)


def choices(request: Submit, count: int) -> list[Submit]:
    """Return ``count`` answers to one prompt."""
    return [
        msgspec.structs.replace(
            request, request_id=n, sampling=msgspec.structs.replace(request.sampling, choice=n)
        )
        for n in range(count)
    ]


def run(core: EngineCore, *requests: Submit) -> dict[int, list[TokenOutput]]:
    for request in requests:
        core.submit(request)
    return finish(core)


def finish(core: EngineCore) -> dict[int, list[TokenOutput]]:
    """The tokens that all requests still get."""
    tokens: defaultdict[int, list[TokenOutput]] = defaultdict(list)
    while core.busy:
        for token in core.step().tokens:
            tokens[token.request_id].append(token)
    return tokens


def ids(outputs: list[TokenOutput]) -> list[int]:
    return [output.token for output in outputs]
