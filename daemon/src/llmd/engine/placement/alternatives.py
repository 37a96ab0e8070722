"""What a model would take on each choice of devices, and which choice is best: for people who ask."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import structs

from llmd.api.byte_size import format_bytes
from llmd.api.errors import ConfigError
from llmd.api.messages import Load
from llmd.config.schema import STREAMED
from llmd.engine.placement.automatic import planned_stages
from llmd.engine.placement.cached_experts import cards_with_cached_experts
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.expert_share import share_on
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import StageParts, part_names, parts_text, place_parts
from llmd.engine.placement.typical_request import Request, request_for
from llmd.models.open_model import OpenModel
from llmd.placement.planner import best_plan
from llmd.placement.problem import Choice, cost_of


class PlannedStage(msgspec.Struct, frozen=True):
    """Consecutive parts of the model on a device."""

    device: str
    """As in ``--split``: with ``/stream``, its weights stay in main memory."""
    parts: str
    """For people."""
    part_names: tuple[str, ...]
    """As in ``--split``."""
    num_bytes: int
    """Weights, keys and values, and step buffers."""
    bytes_by_kind: Mapping[str, int] = {}
    """The same by what takes them: each kind of part, experts, the KV cache, states, and buffers."""
    host_bytes: int = 0
    """Bytes of main memory for weights that are copied to the device in each step, or for experts that it
    reads from there."""
    expert_bytes_per_token: int = 0
    """Bytes of experts that a token reads."""


class Alternative(msgspec.Struct, frozen=True):
    """A choice of devices, and what a request would take there. Seconds are None if it cannot run."""

    name: str
    """The devices."""
    stages: tuple[PlannedStage, ...]
    prompt_s: float | None
    """Seconds until the first token of the answer."""
    tokens_per_s: float | None
    """Tokens of the answer per second; None also if the model gives no answer but embeds."""
    request_s: float | None
    problem: str = ""
    """Why it cannot run."""
    note: str = ""
    """How it runs if there is no room for all experts. Its times are not known if they depend on the disk.
    Those of a card that reads experts from main memory are for a text that uses all equally often."""


class Measured(msgspec.Struct, frozen=True):
    """What a request really took."""

    prompt_s: float
    """Seconds until the first token of the answer."""
    tokens_per_s: float | None
    """Tokens of the answer per second; None if the model gives no answer but embeds."""
    request_s: float
    slowest: float
    """Seconds of the slowest round, divided by those of the fastest one."""


class Comparison(msgspec.Struct, frozen=True):
    """The choices of devices for a model, the best first."""

    request: Request
    alternatives: tuple[Alternative, ...]
    best: str | None
    """Name of the best one; None: the model does not fit this machine."""
    least_s: float | None
    """No choice of devices takes fewer seconds for the request, by the rates that were measured, if its steps
    run one after the other."""
    measured: Measured | None = None
    """What the best choice took, if it was tried."""


def compare(load: Load, model: OpenModel, candidates: Sequence[Candidate]) -> Comparison:
    """Return what a model would take on the best devices, on each device alone, and as the settings say.

    Raises:
        LlmdError: the model cannot be loaded in the formats that are asked for.
    """
    request = request_for(model)
    comparing = _Comparing(load.undivided(), model, candidates, request)
    plan = best_plan(comparing.problem)
    choices = comparing.singles()
    if plan:
        choices |= {plan.choice.devices: plan.choice}
    if load.stages or load.division:
        choices |= comparing.as_set(_set_stages(load, model, candidates))
    found = [comparing.described(devices, choice) for devices, choice in choices.items()]
    cached = _with_cached_experts(load, model, candidates, request)
    found = [*cached.values(), *(one for one in found if one.name not in cached)]
    found.sort(key=lambda one: (one.request_s is None, one.request_s or 0.0))
    if not plan and not cached:
        found = _with_few_experts(load, model, candidates, request, found)
    best = found[0]
    return Comparison(
        request,
        tuple(found),
        best.name if plan or best.note else None,
        plan.least_seconds if plan and not best.note else None,
    )


def _with_cached_experts(
    load: Load, model: OpenModel, candidates: Sequence[Candidate], request: Request
) -> dict[str, Alternative]:
    """Return cards that read some experts of a model from main memory, by name."""
    found = {}
    for one in cards_with_cached_experts(load, model, candidates):
        comparing = _Comparing(one.load, model, [one.candidate], request)
        devices = (0,) * len(model.plan.parts)
        choice = cost_of(comparing.problem, devices)
        assert choice is not None, "the card runs the whole model"
        note = f"room for {one.load.expert_share:.0%} of the experts; steps read the others from main memory"
        found[one.candidate.info.name] = structs.replace(comparing.timed(devices, choice), note=note)
    return found


def _with_few_experts(
    load: Load,
    model: OpenModel,
    candidates: Sequence[Candidate],
    request: Request,
    found: Sequence[Alternative],
) -> list[Alternative]:
    """Let devices alone run the model with some of its experts in memory, if they can; they come first."""
    able = {}
    for number, one in enumerate(candidates):
        share = share_on(load, model, one)
        if share < 1.0:
            fewer = structs.replace(load.undivided(), expert_share=share, stages=())
            devices = (number,) * len(model.plan.parts)
            comparing = _Comparing(fewer, model, candidates, request)
            stages = comparing.described(devices, cost_of(comparing.problem, devices)).stages
            note = f"room for {share:.0%} of the experts; steps read the others from the files"
            able[one.info.name] = Alternative(one.info.name, stages, None, None, None, note=note)
    return [*able.values(), *(one for one in found if one.name not in able)]


def _set_stages(load: Load, model: OpenModel, candidates: Sequence[Candidate]) -> tuple[StageParts, ...]:
    """Return the stages that the settings ask for; none if they do not fit."""
    return place_parts(load, model.plan) if load.stages else planned_stages(load, model, candidates)


class _Comparing:
    """Choices are device numbers by part, with what they cost; None: a device cannot run its part."""

    def __init__(
        self, load: Load, model: OpenModel, candidates: Sequence[Candidate], request: Request
    ) -> None:
        self._load = load
        self._model = model
        self._answer_len = request.answer_len
        self._devices = ModelOnDevices(load, model, candidates)
        self.problem = self._devices.problem(request)
        self._prompt_request = Request(request.prompt_len, 0)
        self._prompt = self._devices.problem(self._prompt_request)

    def singles(self) -> dict[tuple[int, ...], Choice | None]:
        """Return each device alone, without streamed weights."""
        alone = [device for device in self.problem.devices if not self._devices.streams(device)]
        choices = [(device,) * len(self.problem.parts) for device in alone]
        return {devices: cost_of(self.problem, devices) for devices in choices}

    def as_set(self, stages: Sequence[StageParts]) -> dict[tuple[int, ...], Choice | None]:
        """Return the choice of the settings; nothing if there are no stages.

        Raises:
            ConfigError: they name a device that cannot be used or was not measured.
        """
        devices: list[int] = []
        for part, device in enumerate(self._devices.choice(stages)):
            if device is None:
                raise self._not_usable(stages, part)
            devices.append(device)
        return {tuple(devices): cost_of(self.problem, devices)} if devices else {}

    def _not_usable(self, stages: Sequence[StageParts], part: int) -> ConfigError:
        """Return the error of a part whose device is not one of the problem."""
        stage = next(stage for stage in stages if stage.first_part <= part < stage.last_part)
        wanted = stage.device + (STREAMED if part in stage.streamed else "")
        names = ", ".join(map(self._devices.name, self.problem.devices))
        return ConfigError(
            f"--split names {wanted}, which is not a device that can be used",
            hint=f"choose from {names}; `llmd devices` shows why others are not used",
        )

    def name_of(self, devices: Sequence[int]) -> str:
        return " + ".join(dict.fromkeys(map(self._devices.name, devices)))

    def described(self, devices: tuple[int, ...], choice: Choice | None) -> Alternative:
        """Return a choice with its stages and times, or why it is impossible."""
        problem = self._trouble(devices, choice)
        if problem or choice is None:
            return Alternative(self.name_of(devices), self._stages(devices), None, None, None, problem)
        return self.timed(devices, choice)

    def timed(self, devices: tuple[int, ...], choice: Choice) -> Alternative:
        """Return a choice, whether it fits or not, with its stages and times."""
        in_turn = cost_of(self._prompt, devices)
        assert in_turn is not None, "the devices can run the parts"
        prompt_s = self._devices.prompt_seconds(devices, self._prompt_request)
        answer_s = choice.seconds - in_turn.seconds
        return Alternative(
            self.name_of(devices),
            self._stages(devices),
            prompt_s,
            self._answer_len / answer_s if self._answer_len else None,
            prompt_s + answer_s,
        )

    def _trouble(self, devices: tuple[int, ...], choice: Choice | None) -> str:
        """Return why a choice is impossible; empty: it is not."""
        if choice is None:
            part = next(i for i, device in enumerate(devices) if self.problem.parts[i][device] is None)
            text = parts_text(self._model.plan, part, part + 1)
            return f"{self._devices.name(devices[part])} cannot run {text}"
        short = [
            f"{format_bytes(taken)} of the {format_bytes(budget)} that are free"
            for taken, budget in zip(choice.num_bytes, self.problem.budgets, strict=True)
            if taken > budget
        ]
        return f"needs {' and '.join(short)}" if short else ""

    def _stages(self, devices: tuple[int, ...]) -> tuple[PlannedStage, ...]:
        """Return the consecutive parts of each device."""
        stages: list[PlannedStage] = []
        first = 0
        for device, run in itertools.groupby(devices):
            last = first + len(list(run))
            begins = self.problem.is_border(devices[first - 1] if first else None, device)
            sizes = self._devices.sizes(device, first, last, begins=begins)
            plan = self._model.plan
            stages.append(
                PlannedStage(
                    self._devices.name(device),
                    parts_text(plan, first, last),
                    part_names(plan, first, last),
                    sum(sizes.values()),
                    sizes,
                    self._devices.host_bytes(device, first, last),
                    self._devices.expert_bytes_per_token(device, first, last),
                )
            )
            first = last
        return tuple(stages)
