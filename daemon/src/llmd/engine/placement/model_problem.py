"""State a model and the devices of a machine as a problem for the planner.

A part costs the seconds that a request takes, and the bytes of its weights and of its keys and values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from llmd.api.device import HOST_MEMORY
from llmd.api.kv import kv_block_bytes
from llmd.api.messages import Load
from llmd.api.step_buffers import FLOAT_BYTES
from llmd.api.streaming import may_stream
from llmd.config.schema import STREAMED
from llmd.engine.placement.candidates import Candidate, are_rivals
from llmd.engine.placement.device_parts import DeviceParts
from llmd.engine.placement.kv_budget import NO_LIMIT, KVMemory, plan_kv
from llmd.engine.placement.memory_need import LEAST_KV_TOKENS
from llmd.engine.placement.memory_use import least_by_memory
from llmd.engine.placement.stages import StageParts, joined, stage_limits
from llmd.engine.placement.typical_request import Request, request_for
from llmd.models.dependent_parts import dependent_parts
from llmd.models.open_model import OpenModel
from llmd.placement.overlap import overlapped_seconds
from llmd.placement.problem import Problem
from llmd.placement.seconds import Rows


class ModelOnDevices:
    """A model whose parts may be on some candidates.

    The devices of its `Problem` are the candidates in their order, then those of them that can stream weights
    with streamed ones.
    """

    def __init__(self, load: Load, model: OpenModel, candidates: Sequence[Candidate]) -> None:
        """Lower the model for each candidate.

        Raises:
            LlmdError: the model cannot be loaded in the formats that are asked for.
        """
        self._load = load
        self._model = model
        limits = stage_limits(load, model, [one.info for one in candidates])
        streaming = [one for one in candidates if can_stream(one)]
        self._owners = [*candidates, *streaming]
        self._num_resident = len(candidates)
        self._devices = [
            DeviceParts(load, model, one, limits, streamed=number >= len(candidates))
            for number, one in enumerate(self._owners)
        ]

    def problem(self, request: Request | None = None, *, kv_slots: int | None = None) -> Problem:
        """Return the problem of placing the model for a request; None: `request_for` the model.

        There must be room for the keys and values of ``kv_slots`` sequences of `LEAST_KV_TOKENS` tokens;
        None: of as many as the load allows at once.
        """
        request, owners = request or request_for(self._model), self._owners
        blocks = self._num_blocks(kv_slots)
        budgets = _budgets(self._load, owners)
        memories = list(budgets)
        num_rows = request.prompt_len + request.answer_len
        return Problem(
            memories=tuple(memories.index(one.info.memory_id) for one in owners),
            budgets=tuple(budgets.values()),
            parts=tuple(zip(*(device.costs(request, blocks) for device in self._devices), strict=True)),
            stages=tuple(device.stage(request) for device in self._devices),
            moves=tuple(tuple(_move_seconds(self._model, num_rows, a, b) for b in owners) for a in owners),
            tied_bytes=tuple(device.tied_bytes() for device in self._devices),
            rivals=tuple(
                (one, other)
                for one, other in itertools.combinations(range(len(owners)), 2)
                if are_rivals(owners[one], owners[other])
            ),
            host=memories.index(HOST_MEMORY) if HOST_MEMORY in memories else None,
            hardware=tuple(owners.index(one) for one in owners),
            uses=tuple(device.use() for device in self._devices),
            dependent=frozenset(dependent_parts(self._model.plan)),
        )

    def stages(self, devices: Sequence[int]) -> tuple[StageParts, ...]:
        """Return the stages of a choice: runs of parts on one candidate."""
        return joined(
            [
                StageParts(
                    self._owners[device].info.name, part, part + 1, (part,) if self.streams(device) else ()
                )
                for part, device in enumerate(devices)
            ]
        )

    def token_seconds(self, stages: Sequence[StageParts]) -> tuple[float, ...]:
        """Return what each of these stages takes for a token in the middle of the answer of a request.

        Their devices are among the candidates.
        """
        request = request_for(self._model)
        rows = Rows(1, 1, request.prompt_len + request.answer_len // 2)
        return tuple(self._stage_seconds(stage, rows) for stage in stages)

    def prompt_seconds(self, devices: Sequence[int], request: Request) -> float:
        """Return what the prompt of a request takes on a choice of devices, which can run their parts.

        Its steps follow each other from stage to stage: see `overlapped_seconds`.
        """
        stages = self.stages(devices)
        owners = [self._owners[devices[stage.first_part]] for stage in stages]
        steps = []
        for rows in request.prompt_steps(self._load.chunk_len):
            moved_s = [_move_seconds(self._model, rows.rows, *pair) for pair in itertools.pairwise(owners)]
            # Devices that share a memory share what limits them, often even the processors.
            steps.append(
                [
                    (owner.info.memory_id, self._stage_seconds(stage, rows) + seconds)
                    for stage, owner, seconds in zip(stages, owners, [0.0, *moved_s], strict=True)
                ]
            )
        return overlapped_seconds(steps, len({stage.device for stage in stages}))

    def _stage_seconds(self, stage: StageParts, rows: Rows) -> float:
        devices = [self._devices[number] for number in self.choice([stage]) if number is not None]
        parts = range(stage.first_part, stage.last_part)
        return devices[0].step_s + sum(
            device.step_seconds(part, rows) for device, part in zip(devices, parts, strict=True)
        )

    def streams(self, device: int) -> bool:
        """Whether a device of the problem has streamed weights."""
        return device >= self._num_resident

    def name(self, device: int) -> str:
        """Return the name of a device of the problem, as ``--split`` has it."""
        return self._owners[device].info.name + (STREAMED if self.streams(device) else "")

    def choice(self, stages: Sequence[StageParts]) -> list[int | None]:
        """Return the device of each part of some stages; None: it is not among the devices of the problem."""
        numbers = {
            (owner.info.name, self.streams(number)): number for number, owner in enumerate(self._owners)
        }
        return [
            numbers.get((stage.device, part in stage.streamed))
            for stage in stages
            for part in range(stage.first_part, stage.last_part)
        ]

    def sizes(self, device: int, first_part: int, last_part: int, *, begins: bool = True) -> dict[str, int]:
        """Return the bytes of a device's memory for some parts, by kind.

        ``begins``: they begin a stage, whose buffers are counted too.
        """
        return self._devices[device].sizes(first_part, last_part, self._num_blocks(None), begins=begins)

    def expert_bytes_per_token(self, device: int, first_part: int, last_part: int) -> int:
        """Return the bytes of experts that a token reads in some parts."""
        return self._devices[device].expert_bytes_per_token(first_part, last_part)

    def host_bytes(self, device: int, first_part: int, last_part: int) -> int:
        """Return the bytes of main memory for streamed weights of some parts."""
        return self._devices[device].host_bytes(first_part, last_part)

    def _num_blocks(self, slots: int | None) -> tuple[int, ...]:
        """Return the blocks of each KV group that there must be room for."""
        load, groups = self._load, self._model.plan.groups
        memory = KVMemory("", tuple(kv_block_bytes(group, load.kv_dtype) for group in groups), NO_LIMIT)
        return plan_kv(
            groups,
            [memory],
            slots=slots or load.slots,
            context_len=min(self._model.plan.context_len, LEAST_KV_TOKENS),
            chunk_len=load.chunk_len,
            total_bytes=load.kv_memory,
        ).num_blocks


def can_stream(candidate: Candidate) -> bool:
    """Whether a device can take weights from main memory in each step, at a rate that was measured."""
    return may_stream(candidate.info) and candidate.profile.stream_bytes_per_s > 0


def _budgets(load: Load, candidates: Sequence[Candidate]) -> dict[str, int]:
    """Return the bytes that the model may take of each memory."""
    sizes = []
    for one in candidates:
        limit = load.options_of(one.info.name).memory_bytes
        sizes.append((one.info.memory_id, one.free_bytes if limit is None else min(one.free_bytes, limit)))
        if can_stream(one):
            sizes.append((HOST_MEMORY, one.host_free_bytes))
    return least_by_memory(sizes)


def _move_seconds(model: OpenModel, num_rows: int, source: Candidate, target: Candidate) -> float:
    """Return the seconds for taking the hidden states of some rows from a device to another."""
    if source.info.name == target.info.name:
        return 0.0
    num_bytes = FLOAT_BYTES * model.plan.hidden_size * num_rows
    cards = [one for one in (source, target) if one.info.memory_id != HOST_MEMORY]
    return sum(num_bytes / one.profile.copy_bytes_per_s for one in cards)
