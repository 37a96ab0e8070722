"""What the parts of a model cost on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd.api.device import HOST_MEMORY, StageLimits
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.program import Program
from llmd.api.step_buffers import step_buffer_bytes
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.memory_use import pool_bytes
from llmd.engine.placement.stages import StageParts, first_gpu_part, lower_stage, refuses
from llmd.engine.placement.typical_request import Request
from llmd.models.open_model import OpenModel
from llmd.models.weight_formats import weight_bytes
from llmd.placement.problem import Cost
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
CACHE, BUFFERS = "KV cache", "buffers"
"""What else takes memory."""


class DeviceParts:
    """The parts of a model on a candidate. Numbers of blocks are those of each KV group."""

    def __init__(self, load: Load, model: OpenModel, candidate: Candidate, limits: StageLimits) -> None:
        self._load = load
        self._info, self._profile = candidate.info, candidate.profile
        self._limits = limits
        self._first_gpu_part = first_gpu_part(model.plan, load.gpu_layers or 0)
        self._kinds = [KINDS[part.kind] for part in model.plan.parts]
        self._programs = [
            lower_stage(load, model, candidate.info, StageParts(candidate.info.name, part, part + 1))
            for part in range(len(model.plan.parts))
        ]
        self._works = [work_of(program, load.kv_dtype) for program in self._programs]

    def costs(self, request: Request, num_blocks: Sequence[int]) -> list[Cost | None]:
        """Return the cost of each part; None if the device cannot run it."""
        return [
            None
            if self._is_barred(part) or refuses(self._load, self._info, program)
            else Cost(self._seconds(part, request), sum(self._sizes(part, num_blocks).values()))
            for part, program in enumerate(self._programs)
        ]

    def stage(self, request: Request) -> Cost:
        """Return the cost of a stage: its step buffers, and the fixed time of each step."""
        steps = len(list(request.prompt_steps(self._load.chunk_len))) + request.answer_len
        return Cost(steps * self._profile.step_s, self._stage_buffers())

    def sizes(self, first: int, last: int, num_blocks: Sequence[int]) -> dict[str, int]:
        """Return the bytes of a stage of some parts, by kind."""
        found: dict[str, int] = {}
        for part in range(first, last):
            for kind, num_bytes in self._sizes(part, num_blocks).items():
                found[kind] = found.get(kind, 0) + num_bytes
        if first == 0 and last == len(self._programs):
            found[self._kinds[-1]] = found.get(self._kinds[-1], 0) - self.tied_bytes()
        found[BUFFERS] = found.get(BUFFERS, 0) + self._stage_buffers()
        return {kind: found[kind] for kind in (*KINDS.values(), CACHE, BUFFERS) if found.get(kind)}

    def tied_bytes(self) -> int:
        """Return the bytes of the weights that the first and the last part share."""
        first, last = self._programs[0], self._programs[-1]
        shared = set(first.weights) & set(last.weights) if first is not last else set()
        return sum(map(weight_bytes, shared))

    def _is_barred(self, part: int) -> bool:
        """Whether `Load.gpu_layers` keeps a part from this device."""
        if self._load.gpu_layers is None:
            return False
        return (self._info.memory_id != HOST_MEMORY) != (part >= self._first_gpu_part)

    def _seconds(self, part: int, request: Request) -> float:
        work = self._works[part]
        steps = request.prompt_steps(self._load.chunk_len)
        prompt_s = sum(step_seconds(work, self._profile, rows) for rows in steps)
        # A token in the middle of the answer.
        token = Rows(1, 1, request.prompt_len + request.answer_len // 2)
        return prompt_s + request.answer_len * step_seconds(work, self._profile, token)

    def _sizes(self, part: int, num_blocks: Sequence[int]) -> Mapping[str, int]:
        """Return the bytes of a part by kind."""
        program = self._programs[part]
        blocks = [kv_block_bytes(group, self._load.kv_dtype) for group in program.groups]
        return {
            self._kinds[part]: sum(map(weight_bytes, program.weights)),
            CACHE: pool_bytes(num_blocks, blocks),
            # The logits of a head are much larger than the rows of other parts.
            BUFFERS: self._buffers(program) if program.has_head else 0,
        }

    def _stage_buffers(self) -> int:
        return max((self._buffers(one) for one in self._programs if not one.has_head), default=0)

    def _buffers(self, program: Program) -> int:
        return step_buffer_bytes(program, self._limits)
