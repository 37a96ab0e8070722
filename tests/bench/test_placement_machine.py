from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from bench import placement_machine
from bench.placement_machine import Machine, Setup, whole_layers
from llmd.api.messages import Load, StageSpec
from llmd.benchmark import timed_requests
from llmd.engine.composition import make_host
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.host.benchmarks import FULL
from llmd.models.open_model import OpenModel, open_model
from llmd.profiling import time_shares, timed_model
from llmd.testing.throttled_device import ThrottledDevice
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.daemon.profiling.simulated import Clock
from tests.docs.model_sizes import MODELS, write_headers


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The devices that keep time, in simulated time."""
    clock = Clock()
    for module in (timed_model, time_shares, timed_requests):
        monkeypatch.setattr(module, "time", clock)

    def opened(name: str) -> ThrottledDevice:
        return ThrottledDevice(
            clock, clock.pause, placement_machine.SPEEDS[name], name=name, memory_bytes=1 << 40
        )

    monkeypatch.setattr(placement_machine, "_opened", opened)
    monkeypatch.setattr(placement_machine, "FULL", structs.replace(FULL, budget_s=0.0))
    with Machine(make_host(tmp_path / "probes").architectures(), ["quick", "slow", "far"]) as machine:
        machine.measure_devices()
        yield machine


@pytest.fixture
def load(tmp_path: Path) -> Load:
    config = {**MODELS["Llama 3.2 1B"], "num_hidden_layers": 4}
    return Load(str(write_headers(config, tmp_path / "m")), context_len=1024, slots=1)


KEEPING_TIME = [one for one in placement_machine.SETUPS if set(one.devices) <= set(placement_machine.SPEEDS)]


@pytest.mark.parametrize("setup", KEEPING_TIME, ids=lambda setup: setup.name)
def test_setups_take_as_long_as_predicted(machine: Machine, load: Load, setup: Setup) -> None:
    found = machine.compare(load, setup)
    assert found.prompt == pytest.approx(1.0, abs=0.15)
    assert found.answer == pytest.approx(1.0, abs=0.15)
    assert (found.gain is not None) == bool(setup.attention_on)
    if found.gain is not None:
        assert found.gain > 1.1
    if setup.room or setup.attention_on:
        assert set(found.devices.split(" + ")) == set(setup.devices)
    elif not setup.halves:
        assert found.devices == setup.devices[0]


def test_halves_are_what_a_split_says(machine: Machine, load: Load) -> None:
    found = machine.compare(load, Setup("half each", ("slow", "quick"), halves=True))
    assert found.devices == "slow + quick"
    assert found.answer == pytest.approx(1.0, abs=0.15)


def test_the_best_whole_layers_fill_the_quicker_device(load: Load, tmp_path: Path) -> None:
    model = open_model(Path(load.directory), make_host(tmp_path / "probes").architectures(), 1024)
    with closing(model.checkpoint):
        both = candidates(QUICK, SLOW, free_bytes=1 << 40)
        assert whole_layers(load, model, both) == (StageSpec("d0", "embed", "head"),)
        both[0] = structs.replace(both[0], free_bytes=_bytes_of_layers(load, model) * 5 // 2)
        stages = whole_layers(load, model, both)
        assert [stage.device for stage in stages].count("d0") == 1
        (quick,) = (stage for stage in stages if stage.device == "d0")
        assert int(quick.last) - int(quick.first) == 1, "two of its layers fit"


def _bytes_of_layers(load: Load, model: OpenModel) -> int:
    """Return the bytes of a layer."""
    (one,) = candidates(QUICK)
    sizes = ModelOnDevices(load, model, [one]).sizes(0, 1, 3, begins=False)
    return sum(sizes.values())
