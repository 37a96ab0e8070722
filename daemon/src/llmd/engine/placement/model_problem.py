"""State a model and the devices of a machine as a problem for the planner.

A part costs the seconds that a prompt of `PROMPT_LEN` tokens and an answer of `ANSWER_LEN` tokens
take, and the bytes of its weights and of its keys and values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from llmd.api.device import HOST_MEMORY, StageLimits
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.program import Program
from llmd.api.step_buffers import FLOAT_BYTES, step_buffer_bytes
from llmd.engine.placement.candidates import Candidate, are_rivals
from llmd.engine.placement.kv_budget import NO_LIMIT, KVMemory, plan_kv
from llmd.engine.placement.memory_need import LEAST_KV_TOKENS
from llmd.engine.placement.memory_use import least_by_memory, pool_bytes
from llmd.engine.placement.stages import StageParts, first_gpu_part, lower_stage, refuses, stage_limits
from llmd.models.open_model import OpenModel
from llmd.models.weight_formats import weight_bytes
from llmd.placement.problem import Cost, Problem
from llmd.placement.seconds import Rows, step_seconds
from llmd.placement.work import work_of

PROMPT_LEN = 512
"""Tokens of the prompt that a plan is made for."""
ANSWER_LEN = 128
"""Tokens of its answer."""


class Request(msgspec.Struct, frozen=True):
    """What a plan is made for."""

    prompt_len: int = PROMPT_LEN
    answer_len: int = ANSWER_LEN

    def prompt_steps(self, chunk_len: int) -> Iterator[Rows]:
        """Yield the steps in which the prompt is computed."""
        for first in range(0, self.prompt_len, chunk_len):
            last = min(first + chunk_len, self.prompt_len)
            yield Rows(sequences=1, rows=last - first, length=last)


TYPICAL = Request()
"""The request that models are placed for."""


def request_for(model: OpenModel) -> Request:
    """Return what a model is placed for; a model that embeds gives no answer."""
    return TYPICAL if model.embedding is None else Request(TYPICAL.prompt_len, 0)


def model_problem(
    load: Load,
    model: OpenModel,
    candidates: Sequence[Candidate],
    request: Request = TYPICAL,
    *,
    kv_slots: int | None = None,
) -> Problem:
    """Return the problem of placing a model. Its devices are the candidates; memories are in their order.

    There must be room for the keys and values of ``kv_slots`` sequences of `LEAST_KV_TOKENS` tokens; None: of
    as many as the load allows.

    Raises:
        LlmdError: the model cannot be loaded in the formats that are asked for.
    """
    limits = stage_limits(load, model, [one.info for one in candidates])
    blocks = _num_blocks(load, model, kv_slots or load.slots)
    devices = [_Device(load, model, one, request, limits, blocks) for one in candidates]
    budgets = _budgets(load, candidates)
    memories = list(budgets)
    return Problem(
        memories=tuple(memories.index(one.info.memory_id) for one in candidates),
        budgets=tuple(budgets.values()),
        parts=tuple(zip(*(device.parts() for device in devices), strict=True)),
        stages=tuple(device.stage() for device in devices),
        moves=tuple(tuple(_move_seconds(model, request, a, b) for b in candidates) for a in candidates),
        tied_bytes=tuple(device.tied_bytes() for device in devices),
        rivals=tuple(
            (one, other)
            for one, other in itertools.combinations(range(len(candidates)), 2)
            if are_rivals(candidates[one], candidates[other])
        ),
    )


def _budgets(load: Load, candidates: Sequence[Candidate]) -> dict[str, int]:
    """Return the bytes that the model may take of each memory."""
    sizes = []
    for one in candidates:
        limit = load.options_of(one.info.name).memory_bytes
        sizes.append((one.info.memory_id, one.free_bytes if limit is None else min(one.free_bytes, limit)))
    return least_by_memory(sizes)


def _num_blocks(load: Load, model: OpenModel, slots: int) -> tuple[int, ...]:
    """Return the blocks of each KV group that there must be room for."""
    groups, context_len = model.plan.groups, model.plan.context_len
    memory = KVMemory("", tuple(kv_block_bytes(group, load.kv_dtype) for group in groups), NO_LIMIT)
    least = min(context_len, LEAST_KV_TOKENS)
    return plan_kv(
        groups,
        [memory],
        slots=slots,
        context_len=least,
        chunk_len=load.chunk_len,
        total_bytes=load.kv_memory,
    ).num_blocks


def _move_seconds(model: OpenModel, request: Request, source: Candidate, target: Candidate) -> float:
    """Return the seconds of a request for taking its hidden states from a device to another."""
    if source.info.name == target.info.name:
        return 0.0
    num_bytes = FLOAT_BYTES * model.plan.hidden_size * (request.prompt_len + request.answer_len)
    cards = [one for one in (source, target) if one.info.memory_id != HOST_MEMORY]
    return sum(num_bytes / one.profile.copy_bytes_per_s for one in cards)


class _Device:
    """What a candidate makes of the parts of a model."""

    def __init__(
        self,
        load: Load,
        model: OpenModel,
        candidate: Candidate,
        request: Request,
        limits: StageLimits,
        num_blocks: Sequence[int],
    ) -> None:
        self._load = load
        self._info, self._profile = candidate.info, candidate.profile
        self._request = request
        self._limits = limits
        self._num_blocks = num_blocks
        self._first_gpu_part = first_gpu_part(model.plan, load.gpu_layers or 0)
        self._programs = [
            lower_stage(load, model, candidate.info, StageParts(candidate.info.name, part, part + 1))
            for part in range(len(model.plan.parts))
        ]

    def parts(self) -> list[Cost | None]:
        """Return the cost of each part; None if the device cannot run it."""
        return [
            None if self._is_barred(part) or refuses(self._load, self._info, program) else self._part(program)
            for part, program in enumerate(self._programs)
        ]

    def _is_barred(self, part: int) -> bool:
        """Whether `Load.gpu_layers` keeps a part from this device."""
        if self._load.gpu_layers is None:
            return False
        return (self._info.memory_id != HOST_MEMORY) != (part >= self._first_gpu_part)

    def stage(self) -> Cost:
        """Return the cost of a stage: its step buffers, and the fixed time of each step."""
        buffers = [self._buffers(program) for program in self._programs if not program.has_head]
        steps = sum(1 for _ in self._prompt_steps()) + self._request.answer_len
        return Cost(steps * self._profile.step_s, max(buffers, default=0))

    def tied_bytes(self) -> int:
        """Return the bytes of the weights that the first and the last part share."""
        first, last = self._programs[0], self._programs[-1]
        shared = set(first.weights) & set(last.weights) if first is not last else set()
        return sum(map(weight_bytes, shared))

    def _part(self, program: Program) -> Cost:
        work = work_of(program, self._load.kv_dtype)
        prompt_s = sum(step_seconds(work, self._profile, rows) for rows in self._prompt_steps())
        prompt_len, answer_len = self._request.prompt_len, self._request.answer_len
        token_s = step_seconds(work, self._profile, Rows(1, 1, prompt_len + answer_len // 2))
        weights = sum(map(weight_bytes, program.weights))
        kv = pool_bytes(
            self._num_blocks, [kv_block_bytes(group, self._load.kv_dtype) for group in program.groups]
        )
        # The logits of a head are much larger than the rows of other parts.
        logits = self._buffers(program) if program.has_head else 0
        return Cost(prompt_s + answer_len * token_s, weights + kv + logits)

    def _prompt_steps(self) -> Iterator[Rows]:
        return self._request.prompt_steps(self._load.chunk_len)

    def _buffers(self, program: Program) -> int:
        return step_buffer_bytes(program, self._limits)
