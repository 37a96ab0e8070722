"""What the parts of a model cost on a device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from llmd.api.device import HOST_MEMORY, StageLimits
from llmd.api.expert_ops import Experts
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.program import Program
from llmd.api.step_buffers import step_buffer_bytes
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.memory_use import pool_bytes
from llmd.engine.placement.stages import StageParts, cpu_expert_parts, first_gpu_part, lower_stage, refuses
from llmd.engine.placement.typical_request import Request
from llmd.engine.step_reads import expert_reads
from llmd.models.dependent_parts import part_runs
from llmd.models.open_model import OpenModel
from llmd.models.program_bytes import (
    BUFFERED_PARTS,
    absent_bytes,
    expert_bytes,
    main_memory_expert_bytes,
)
from llmd.placement.problem import NOTHING, Cost
from llmd.placement.seconds import Rows, step_seconds
from llmd.placement.work import work_of

KINDS = {
    "embed": "embedding",
    "mixer": "attention",
    "ffn": "feed-forward",
    "norm": "norm",
    "score": "score",
    "head": "head",
}
"""Names of the kinds of parts, for users."""
EXPERTS, CACHE, STATES, BUFFERS = "experts", "KV cache", "states", "buffers"
"""What else takes memory. Experts are in feed-forward parts, but are counted apart."""


class DeviceParts:
    """The parts of a model on a candidate. Numbers of blocks are those of each KV group."""

    def __init__(
        self,
        load: Load,
        model: OpenModel,
        candidate: Candidate,
        limits: StageLimits,
        *,
        streamed: bool = False,
    ) -> None:
        """``streamed``: weights stay in main memory, and are copied while the parts before are computed."""
        self._load = load
        self._streamed = streamed
        self._info, self._profile = candidate.info, candidate.profile
        self._limits = limits
        self._first_gpu_part = first_gpu_part(model.plan, load.gpu_layers or 0)
        self._cpu_experts = cpu_expert_parts(model.plan, load.cpu_experts or 0)
        self._layers = [part.layer for part in model.plan.parts]
        self._kinds = [KINDS[part.kind] for part in model.plan.parts]
        self._programs = [
            lower_stage(load, model, candidate.info, StageParts(candidate.info.name, first, last))
            for first, last in part_runs(model.plan)
        ]
        """For each part, the program of it and of the parts that depend on it; those have empty programs."""
        self._experts = [expert_reads(program) for program in self._programs]
        self._works = [work_of(program, load.kv_dtype) for program in self._programs]

    def costs(self, request: Request, num_blocks: Sequence[int]) -> list[Cost | None]:
        """Return the cost of each part; None if the device cannot run it."""
        return [
            None
            if self._is_barred(part) or refuses(self._load, self._info, program)
            else Cost(
                self._seconds(part, request),
                sum(self._sizes(part, num_blocks).values()),
                self.host_bytes(part, part + 1),
            )
            for part, program in enumerate(self._programs)
        ]

    @property
    def step_s(self) -> float:
        """Fixed seconds of each step of a stage."""
        return self._profile.step_s

    def step_seconds(self, part: int, rows: Rows) -> float:
        """Return the seconds of a part in a step: of a streamed one, those of its copy if they are more.

        Experts that are read from main memory take the time of the bus in addition.
        """
        compute_s = step_seconds(self._works[part], self._profile, rows)
        if not self._streamed:
            return compute_s + self._missed_seconds(part, rows)
        return max(compute_s, self._weight_bytes(part) / self._profile.stream_bytes_per_s)

    def stage(self, request: Request) -> Cost:
        """Return the cost of a stage: its step buffers, and the fixed time of each step."""
        steps = len(list(request.prompt_steps(self._load.chunk_len))) + request.answer_len
        return Cost(steps * self._profile.step_s, self._stage_buffers())

    def host_bytes(self, first: int, last: int) -> int:
        """Return the bytes of main memory for weights of some parts: streamed ones, and experts of which the
        device has only some.
        """
        parts = range(first, last)
        if self._streamed:
            return sum(map(self._weight_bytes, parts))
        return sum(main_memory_expert_bytes(self._programs[part], self._info) for part in parts)

    def use(self) -> Cost:
        """Return what the device costs once: room for the copies of two parts, if weights are streamed."""
        if not self._streamed:
            return NOTHING
        layers = [part for part in range(len(self._programs)) if not self._is_barred(part)]
        return Cost(0.0, BUFFERED_PARTS * max(map(self._weight_bytes, layers), default=0))

    def sizes(
        self, first: int, last: int, num_blocks: Sequence[int], *, begins: bool = True
    ) -> dict[str, int]:
        """Return the bytes of the device's memory for some parts, by kind.

        ``begins``: they begin a stage, whose buffers are counted too.
        """
        found: dict[str, int] = {}
        for part in range(first, last):
            for kind, num_bytes in self._sizes(part, num_blocks).items():
                found[kind] = found.get(kind, 0) + num_bytes
        if first == 0 and last == len(self._programs):
            found[self._kinds[-1]] = found.get(self._kinds[-1], 0) - self.tied_bytes()
        found[BUFFERS] = found.get(BUFFERS, 0) + begins * self._stage_buffers() + self.use().num_bytes
        kinds = (*KINDS.values(), EXPERTS, CACHE, STATES, BUFFERS)
        return {kind: found[kind] for kind in kinds if found.get(kind)}

    def expert_bytes_per_token(self, first: int, last: int) -> int:
        """Return the bytes of experts that a token reads in some parts."""
        return round(sum(one.bytes_read(1) for part in range(first, last) for one in self._experts[part]))

    def tied_bytes(self) -> int:
        """Return the bytes of the weights that the first and the last part share."""
        if self._streamed:
            return 0
        first, last = self._programs[0], self._programs[-1]
        shared = set(first.weights) & set(last.weights) if first is not last else set()
        return sum(weight.num_bytes for weight in shared)

    def _is_barred(self, part: int) -> bool:
        """Whether a part cannot be here: by `Load.division`, or because only layers are streamed."""
        if self._streamed and self._layers[part] is None:
            return True
        on_card = self._info.memory_id != HOST_MEMORY
        if self._load.cpu_experts is not None:
            return self._layers[part] is not None and on_card == (part in self._cpu_experts)
        return self._load.gpu_layers is not None and on_card != (part >= self._first_gpu_part)

    def _seconds(self, part: int, request: Request) -> float:
        steps = request.prompt_steps(self._load.chunk_len)
        # A token in the middle of the answer.
        token = Rows(1, 1, request.prompt_len + request.answer_len // 2)
        return sum(self.step_seconds(part, rows) for rows in steps) + request.answer_len * self.step_seconds(
            part, token
        )

    def _missed_seconds(self, part: int, rows: Rows) -> float:
        """Return what it takes to read experts from main memory, if texts use all equally often."""
        program, rate = self._programs[part], self._profile.stream_bytes_per_s
        if not main_memory_expert_bytes(program, self._info):
            return 0.0
        used = sum(one.bytes_read(rows.sequences * rows.rows) for one in self._experts[part])
        missed = used * absent_bytes(program) / expert_bytes(program)
        return missed / rate if rate else math.inf

    def _weight_bytes(self, part: int) -> int:
        return sum(weight.num_bytes for weight in self._programs[part].weights)

    def _sizes(self, part: int, num_blocks: Sequence[int]) -> Mapping[str, int]:
        """Return the bytes of a part by kind."""
        program = self._programs[part]
        weights = self._bytes_by_kind(program)
        return {
            **(dict.fromkeys(weights, 0) if self._streamed else weights),
            CACHE: self._pools(program, num_blocks, states=False),
            STATES: self._pools(program, num_blocks, states=True),
            # The logits of a head are much larger than the rows of other parts.
            BUFFERS: self._buffers(program) if program.has_head else 0,
        }

    def _pools(self, program: Program, num_blocks: Sequence[int], *, states: bool) -> int:
        """Return the bytes of the pools of the groups that keep states, or of the others."""
        return pool_bytes(
            num_blocks,
            [
                kv_block_bytes(group, self._load.kv_dtype) if (group.kind == "state") == states else 0
                for group in program.groups
            ],
        )

    def _bytes_by_kind(self, program: Program) -> Mapping[str, int]:
        """Return the bytes of weights by the kind of the first part that uses them; experts are apart."""
        found: dict[str, int] = {}
        left = set(range(len(program.weights)))
        for instruction in program.instructions:
            for one in instruction.ops:
                used = {index for index in one.weights if index is not None} & left
                kind = EXPERTS if isinstance(one.op, Experts) else self._kinds[instruction.part]
                found[kind] = found.get(kind, 0) + sum(program.weights[index].num_bytes for index in used)
                left -= used
        if absent := absent_bytes(program):
            found[EXPERTS] -= absent
        return found

    def _stage_buffers(self) -> int:
        return max((self._buffers(one) for one in self._programs if not one.has_head), default=0)

    def _buffers(self, program: Program) -> int:
        return step_buffer_bytes(program, self._limits)
