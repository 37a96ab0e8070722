"""Devices that share a model in `bench.placement`: the CPU, lavapipe, and devices that only keep time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import msgspec
from msgspec import structs

from bench.gpu_check import open_device
from llmd.api.device import Device, DeviceProfile
from llmd.api.messages import Load, StageSpec
from llmd.api.plugins import Architecture
from llmd.benchmark.timed_requests import time_requests
from llmd.cli.plan import split_of
from llmd.engine.loading import load_model
from llmd.engine.placement.alternatives import Measured, compare
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import part_names
from llmd.engine.placement.typical_request import TYPICAL
from llmd.host.benchmarks import FULL
from llmd.models.open_model import OpenModel, open_model
from llmd.placement.problem import cost_of, fits
from llmd.profiling.profile import full_profile
from llmd.server.models.load_message import parse_split
from llmd.testing.throttled_device import Speed, ThrottledDevice
from llmd_backend_cpu.device import CpuDevice

ENOUGH = 1 << 40
LAVAPIPE = "vulkan:0"
FEW_ROWS = 64
SPEEDS = {
    "quick": Speed(1.5e10, 8e11, 4e11, step_s=2e-4, copy_bytes_per_s=5e9),
    "slow": Speed(4e9, 2e11, 2e11, step_s=2e-4, copy_bytes_per_s=5e9),
    "far": Speed(1.2e10, 6e11, 4e9, step_s=1e-4, copy_bytes_per_s=5e9),
}
"""Devices that only keep time. The last one is slow at attention."""


class Setup(msgspec.Struct, frozen=True):
    """Devices that a model may be on, and the room that they have for it."""

    name: str
    devices: tuple[str, ...]
    room: Mapping[str, float] = {}
    """Share of the model's bytes that a device has room for; others have room for all of it."""
    halves: bool = False
    """Each of the two devices gets half of the layers, as ``--split`` sets it; else, layers are placed."""
    attention_on: str = ""
    """A device that has room for the attention of all layers and nothing else. The choice is compared with
    the best one that keeps the parts of a layer together. Steps have few rows: each stage needs buffers."""


SETUPS = (
    Setup("cpu", ("cpu",)),
    Setup("lavapipe", (LAVAPIPE,)),
    Setup("quick", ("quick",)),
    Setup("slow", ("slow",)),
    Setup("quick and slow, room for all", ("quick", "slow")),
    Setup("quick with room for half, slow", ("quick", "slow"), {"quick": 0.5}),
    Setup("quick with room for half, cpu", ("quick", "cpu"), {"quick": 0.5}),
    Setup("half each: cpu, lavapipe", ("cpu", LAVAPIPE), halves=True),
    Setup("half each: lavapipe, quick", (LAVAPIPE, "quick"), halves=True),
    Setup("quick with room for attention, far", ("quick", "far"), attention_on="quick"),
)


class Outcome(msgspec.Struct, frozen=True):
    """What was predicted for a setup, divided by what it took."""

    prompt: float
    answer: float
    devices: str
    """The devices that had parts."""
    gain: float | None = None
    """Seconds of the best choice of whole layers, divided by those of this one."""


class Machine:
    """The devices of setups; a context manager, which closes them."""

    def __init__(self, architectures: Mapping[str, Architecture], names: Sequence[str]) -> None:
        """Open the devices of these names."""
        self._architectures = architectures
        self._opened = ExitStack()
        self.devices: dict[str, Device] = {}
        for name in names:
            self.devices[name] = _opened(name)
            self._opened.callback(self.devices[name].close)
        self._profiles: dict[str, DeviceProfile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._opened.close()

    def measure_devices(self) -> dict[str, float]:
        """Measure each device as at a first start; return the seconds that each took."""
        took = {}
        for name, device in self.devices.items():
            began = time.perf_counter()
            self._profiles[name] = full_profile(device, FULL.budget_s)
            took[name] = time.perf_counter() - began
        return took

    def compare(self, load: Load, setup: Setup) -> Outcome:
        """Predict a request for a setup by the rates that were measured last, and run it."""
        model = open_model(Path(load.directory), self._architectures, load.context_len)
        with closing(model.checkpoint):
            load = structs.replace(load, chunk_len=FEW_ROWS) if setup.attention_on else load
            candidates = self._candidates(load, model, setup)
            asked = structs.replace(load, stages=_halves(model, setup.devices) if setup.halves else ())
            found = compare(asked, model, candidates).alternatives
            best = next(one for one in found if len(one.stages) == 2) if setup.halves else found[0]
            others = whole_layers(load, model, candidates) if setup.attention_on else None
        took = self._run(load, parse_split(split_of(best)))
        assert best.prompt_s is not None, "it is a choice that runs"
        assert best.request_s is not None, "it is a choice that runs"
        return Outcome(
            best.prompt_s / took.prompt_s,
            (best.request_s - best.prompt_s) / (took.request_s - took.prompt_s),
            best.name,
            self._run(load, others).request_s / took.request_s if others else None,
        )

    def _candidates(self, load: Load, model: OpenModel, setup: Setup) -> list[Candidate]:
        """Return the devices of a setup with their room."""
        found = []
        for name in setup.devices:
            one = Candidate(self.devices[name].info, self._profiles[name], ENOUGH)
            parts = ModelOnDevices(load, model, [one])
            if name == setup.attention_on:
                mixers = [part for part, one in enumerate(model.plan.parts) if one.kind == "mixer"]
                room = sum(sum(parts.sizes(0, part, part + 1).values()) for part in mixers)
            else:
                share = setup.room.get(name, 2.0)
                room = int(share * sum(parts.sizes(0, 0, len(model.plan.parts)).values()))
            found.append(structs.replace(one, free_bytes=room))
        return found

    def _run(self, load: Load, stages: Sequence[StageSpec]) -> Measured:
        # A model closes its devices, so that each run opens its own.
        on_stages = structs.replace(load, stages=tuple(stages))
        loaded = load_model(on_stages, self._architectures, _opened, lambda _progress: None)
        with closing(loaded) as model:
            return time_requests(model, TYPICAL, rounds=1)


def whole_layers(load: Load, model: OpenModel, candidates: Sequence[Candidate]) -> tuple[StageSpec, ...]:
    """Return the fastest choice that fits of those that give one device consecutive whole layers, and another
    one all else.
    """
    problem = ModelOnDevices(load, model, candidates).problem()
    count = len(problem.parts)
    layers = [part.layer for part in model.plan.parts]
    borders = [part for part in range(1, count) if layers[part] != layers[part - 1]]
    choices = (
        (other,) * first + (one,) * (last - first) + (other,) * (count - last)
        for one, other in itertools.permutations(problem.devices, 2)
        for first, last in itertools.combinations([0, *borders, count], 2)
    )
    fitting = [cost for cost in (cost_of(problem, one) for one in choices) if cost and fits(problem, cost)]
    best = min(fitting, key=lambda one: one.seconds).devices
    return tuple(
        StageSpec(stage.device, names[0], names[-1])
        for stage in ModelOnDevices(load, model, candidates).stages(best)
        for names in [part_names(model.plan, stage.first_part, stage.last_part)]
    )


def _halves(model: OpenModel, devices: Sequence[str]) -> tuple[StageSpec, ...]:
    middle = model.plan.num_layers // 2
    return StageSpec(devices[0], "embed", str(middle - 1)), StageSpec(devices[1], str(middle), "head")


def _opened(name: str) -> Device:
    if name == "cpu":
        return CpuDevice()
    if name in SPEEDS:
        return ThrottledDevice(time.perf_counter, time.sleep, SPEEDS[name], name=name, memory_bytes=ENOUGH)
    return open_device(name)
