"""Devices of known speed in simulated time, and models that run on them through the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import structs

from llmd.api.device import HOST_MEMORY
from llmd.api.messages import Load, StageSpec
from llmd.api.plugins import Architecture
from llmd.benchmark.timed_requests import time_requests
from llmd.engine.loading import load_model
from llmd.engine.placement.alternatives import Comparison, Measured, compare
from llmd.engine.placement.candidates import Candidate
from llmd.models.open_model import OpenModel, open_model
from llmd.profiling.profile import full_profile
from llmd.testing.throttled_device import Speed, ThrottledDevice
from tests.daemon.profiling.simulated import Clock

ROOMY = 1 << 40


class Machine:
    """Devices by name, with a memory of their own; ``cpu`` computes in main memory."""

    def __init__(self, clock: Clock, architectures: dict[str, Architecture], **speeds: Speed) -> None:
        """The rates of all devices are measured: a step at a time, since no two steps differ."""
        self._architectures = architectures
        self.devices = {
            name: ThrottledDevice(clock, clock.pause, speed, name=name, memory_bytes=ROOMY)
            for name, speed in speeds.items()
        }
        if "cpu" in self.devices:
            cpu = self.devices["cpu"]
            cpu.info = structs.replace(cpu.info, memory_id=HOST_MEMORY)
        self._profiles = {name: full_profile(device, 0.0) for name, device in self.devices.items()}

    def candidates(self, **room: int) -> list[Candidate]:
        """Return the devices, with as many bytes of free memory, or enough for every model."""
        return [
            Candidate(device.info, self._profiles[name], room.get(name, ROOMY))
            for name, device in self.devices.items()
        ]

    def compare(self, load: Load, **room: int) -> Comparison:
        """Return what is predicted for a load on these devices."""
        with self.opened(load) as model:
            return compare(load, model, self.candidates(**room))

    def measure(self, load: Load, stages: Sequence[StageSpec], found: Comparison) -> Measured:
        """Run the request of a comparison on stages."""
        on_stages = structs.replace(load, stages=tuple(stages))
        model = load_model(on_stages, self._architectures, self.devices.__getitem__, lambda _progress: None)
        with closing(model):
            return time_requests(model, found.request, rounds=1)

    def stage_seconds(self, load: Load, stages: Sequence[StageSpec], found: Comparison) -> Sequence[float]:
        """Run the request of a comparison on stages; return what each took for a step of the answer."""
        on_stages = structs.replace(load, stages=tuple(stages))
        model = load_model(on_stages, self._architectures, self.devices.__getitem__, lambda _progress: None)
        with closing(model):
            time_requests(model, found.request, rounds=1)
            report = model.core.report()
        return [seconds / report.timed_steps for seconds in report.stages_s]

    @contextmanager
    def opened(self, load: Load) -> Iterator[OpenModel]:
        model = open_model(Path(load.directory), self._architectures, load.context_len)
        with closing(model.checkpoint):
            yield model


def whole_layers(num_layers: int, count: int, *, on: str, around: str) -> Iterator[tuple[StageSpec, ...]]:
    """Yield the choices of ``count`` consecutive layers for one device, with all else on another."""
    for first in range(num_layers - count + 1):
        last = first + count - 1
        before = StageSpec(around, "embed", "embed" if first == 0 else str(first - 1))
        after = StageSpec(around, "head" if last == num_layers - 1 else str(last + 1), "head")
        yield before, StageSpec(on, str(first), str(last)), after
