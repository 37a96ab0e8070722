from __future__ import annotations

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo, DeviceOptions, DeviceProfile
from llmd.api.errors import ConfigError, MemoryBudgetError, NotFoundError
from llmd.api.messages import Load, StageSpec
from llmd.engine.placement.automatic import device_names, has_room, planned_stages, with_devices
from llmd.engine.placement.candidates import MachineDevices
from llmd.engine.placement.memory_need import needs_of
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import StageParts, place_parts
from llmd.models.open_model import OpenModel
from llmd.placement.problem import cost_of
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.serving.machine import GivenBenchmarks, machine_of

BOTH = {"d0": SLOW, "d1": QUICK}


def infos(first_score: int = 2, *, first_bytes: int = 1 << 30) -> list[DeviceInfo]:
    """Two devices; with the first score, the first one is preferred to the second."""
    first, second = (one.info for one in candidates(SLOW, QUICK))
    return [
        structs.replace(first, score=first_score, memory_bytes=first_bytes),
        structs.replace(second, score=1, memory_bytes=1 << 30),
    ]


def size_of(load: Load, model: OpenModel) -> int:
    """Return the bytes that the whole model takes."""
    (need,) = needs_of(structs.replace(load, device="d0"), model, lambda _name: infos()[0]).values()
    return need.total_bytes


@pytest.mark.parametrize(
    ("text", "names"),
    [("auto", ()), ("cuda:1", ("cuda:1",)), ("cuda:1, cpu", ("cuda:1", "cpu"))],
)
def test_names_of_devices(text: str, names: tuple[str, ...]) -> None:
    assert device_names(text) == names


def test_a_load_that_names_a_device_or_stages_stays(load: Load, model: OpenModel) -> None:
    machine = machine_of(infos(), BOTH)
    named = structs.replace(load, device="d0")
    assert with_devices(named, model, machine) == named
    split = structs.replace(load, stages=(StageSpec("d1", "embed", "0"), StageSpec("d0", "1", "head")))
    assert with_devices(split, model, machine) == split
    with pytest.raises(NotFoundError):
        with_devices(structs.replace(load, device="d7"), model, machine)


def test_devices_that_cannot_be_measured_leave_the_model_to_the_first_one(
    load: Load, model: OpenModel
) -> None:
    small = [structs.replace(info, memory_bytes=1000) for info in infos()]
    machine = machine_of(small, benchmarks=GivenBenchmarks({}, {}))
    found = with_devices(load, model, machine)
    assert (found.device, found.stages, found.expert_share) == ("d0", (), 1.0)


def test_aliases_become_names_and_budgets_of_absent_devices_are_dropped(load: Load, model: OpenModel) -> None:
    first, second = infos()
    machine = machine_of([first, structs.replace(second, aliases=("GPU-1",))], BOTH)
    asked = structs.replace(
        load,
        device="GPU-1",
        device_options={"GPU-1": DeviceOptions(memory_bytes=5), "gone": DeviceOptions(memory_bytes=6)},
    )
    found = with_devices(asked, model, machine)
    assert (found.device, found.device_options) == ("d1", {"d1": DeviceOptions(memory_bytes=5)})
    split = structs.replace(load, stages=(StageSpec("d0", "embed", "0"), StageSpec("GPU-1", "1", "head")))
    assert [stage.device for stage in with_devices(split, model, machine).stages] == ["d0", "d1"]


def host_and_card() -> MachineDevices:
    """A processor that is measured as faster than the card."""
    first, second = infos()
    return machine_of([structs.replace(first, memory_id=HOST_MEMORY), second], {"d0": QUICK, "d1": SLOW})


@pytest.mark.parametrize(
    ("gpu_layers", "stages"),
    [
        (0, [("d0", 0, 6)]),
        (1, [("d0", 0, 3), ("d1", 3, 6)]),
        (2, [("d0", 0, 1), ("d1", 1, 6)]),
        (99, [("d1", 0, 6)]),
    ],
)
def test_the_last_layers_run_on_the_card(
    load: Load, model: OpenModel, gpu_layers: int, stages: list[tuple[str, int, int]]
) -> None:
    asked = structs.replace(load, gpu_layers=gpu_layers)
    found = place_parts(with_devices(asked, model, host_and_card()), model.plan)
    assert [(one.device, one.first_part, one.last_part) for one in found] == stages
    named = structs.replace(asked, device="d1")
    assert place_parts(with_devices(named, model, host_and_card()), model.plan) == found


def test_layers_that_the_card_cannot_hold_are_refused(load: Load, model: OpenModel) -> None:
    first, second = infos()
    small = [structs.replace(first, memory_id=HOST_MEMORY), structs.replace(second, memory_bytes=1000)]
    asked = structs.replace(load, gpu_layers=2)
    with pytest.raises(MemoryBudgetError, match="--gpu-layers 2: d1 and main memory have no room"):
        with_devices(asked, model, machine_of(small, BOTH))
    with pytest.raises(ConfigError, match="--gpu-layers 2: no graphics card can be used"):
        with_devices(asked, model, machine_of(small[:1], BOTH))


def test_experts_on_the_processor_are_refused_where_they_cannot_be(load: Load, model: OpenModel) -> None:
    asked = structs.replace(load, cpu_experts=2)
    with pytest.raises(ConfigError, match="--cpu-experts 2: the model has no experts"):
        with_devices(asked, model, host_and_card())
    first = structs.replace(infos()[0], memory_id=HOST_MEMORY)
    with pytest.raises(ConfigError, match="--cpu-experts 2: no graphics card can be used"):
        with_devices(asked, model, machine_of([first], BOTH))


def test_a_single_device_gets_the_model_without_a_measurement(load: Load, model: OpenModel) -> None:
    benchmarks = GivenBenchmarks({}, {})
    small = structs.replace(infos()[0], features=(), memory_bytes=1)
    found = with_devices(load, model, machine_of([small], benchmarks=benchmarks))
    assert (found.device, found.stages) == ("d0", ())
    assert benchmarks.measured == []


def test_the_fastest_measured_device_gets_the_model(load: Load, model: OpenModel) -> None:
    found = with_devices(load, model, machine_of(infos(), BOTH))
    assert (found.device, found.stages) == ("d1", ())
    found = with_devices(load, model, machine_of(infos(), {"d0": QUICK, "d1": SLOW}))
    assert (found.device, found.stages) == ("d0", ())


def test_before_all_are_measured_the_preferred_device_gets_the_model(load: Load, model: OpenModel) -> None:
    benchmarks = GivenBenchmarks({"d1": QUICK}, {"d0": SLOW})
    found = with_devices(load, model, machine_of(infos(), benchmarks=benchmarks))
    assert (found.device, found.stages) == ("d0", ())
    assert benchmarks.measured == []


def test_devices_are_measured_at_once_if_the_preferred_one_lacks_room(load: Load, model: OpenModel) -> None:
    benchmarks = GivenBenchmarks({}, {"d0": SLOW, "d1": QUICK})
    small = infos(first_bytes=1000)
    found = with_devices(load, model, machine_of(small, benchmarks=benchmarks))
    assert (found.device, found.stages) == ("d1", ())
    assert benchmarks.measured == ["d0", "d1"]


def test_a_model_that_no_device_holds_is_divided(load: Load, model: OpenModel) -> None:
    size = size_of(load, model)
    given = [structs.replace(one, memory_bytes=size - 4096) for one in infos()]
    found = with_devices(load, model, machine_of(given, BOTH))
    assert {stage.device for stage in found.stages} == {"d0", "d1"}
    parts = place_parts(found, model.plan)
    assert parts == planned_stages(load, model, machine_of(given, BOTH).measured(machine_of(given).usable()))
    assert (parts[0].first_part, parts[-1].last_part) == (0, len(model.plan.parts))


def test_the_cache_gets_smaller_if_there_is_no_room_for_all_slots(load: Load, model: OpenModel) -> None:
    first, second = infos(first_bytes=1000)
    many = structs.replace(load, slots=256)
    given = [first, structs.replace(second, memory_bytes=2 * size_of(many, model))]
    assert with_devices(many, model, machine_of(given, BOTH)).device == "d1"


def test_a_model_that_fits_nowhere_goes_to_the_preferred_device(load: Load, model: OpenModel) -> None:
    given = [structs.replace(one, memory_bytes=1000) for one in infos()]
    found = with_devices(load, model, machine_of(given, BOTH))
    assert (found.device, found.stages) == ("d0", ())


def test_only_named_devices_are_used(load: Load, model: OpenModel) -> None:
    third = structs.replace(infos()[1], name="d2", memory_id="m2")
    rates: dict[str, DeviceProfile] = {"d0": SLOW, "d1": SLOW, "d2": QUICK}
    machine = machine_of([*infos(), third], rates)
    assert with_devices(load, model, machine).device == "d2"
    assert with_devices(structs.replace(load, device="d1,d0"), model, machine).device in {"d0", "d1"}
    with pytest.raises(NotFoundError):
        with_devices(structs.replace(load, device="d1,d9"), model, machine)


def test_a_device_that_cannot_run_the_model_or_its_cache_gets_none_of_it(
    load: Load, model: OpenModel
) -> None:
    first, second = infos()
    unable = structs.replace(second, kv_dtypes=("f32",))
    assert with_devices(load, model, machine_of([first, unable], BOTH)).device == "d0"
    lacking = structs.replace(second, ops=("embed", "norm"))
    assert with_devices(load, model, machine_of([first, lacking], BOTH)).device == "d0"


def test_room_is_what_the_smallest_useful_load_takes(load: Load, model: OpenModel) -> None:
    device, size = machine_of(infos()).usable()[0], size_of(load, model)
    asked = structs.replace(load, device="d0")
    assert has_room(asked, model, device, size)
    assert not has_room(asked, model, device, size - 1)
    lacking = structs.replace(device, info=structs.replace(device.info, ops=("embed",)))
    assert not has_room(asked, model, lacking, size)


def test_stages_of_a_plan_are_runs_of_parts(load: Load, model: OpenModel) -> None:
    assert planned_stages(load, model, candidates(QUICK)) == (StageParts("d0", 0, 6),)
    assert planned_stages(load, model, candidates(QUICK, free_bytes=10)) == ()
    assert planned_stages(load, model, []) == ()


def test_a_card_without_room_streams(load: Load, model: OpenModel) -> None:
    load = structs.replace(load, slots=1, chunk_len=16)
    streaming = candidates(structs.replace(QUICK, stream_bytes_per_s=1e9))
    problem = ModelOnDevices(load, model, streaming).problem()
    whole = cost_of(problem, (0,) * 6)
    assert whole
    (size, _) = whole.num_bytes
    card = structs.replace(infos()[0], memory_bytes=size - 50_000)
    machine = machine_of([card], {"d0": structs.replace(QUICK, stream_bytes_per_s=1e9)})
    found = with_devices(load, model, machine)
    assert {stage.device for stage in found.stages} == {"d0"}
    assert {stage.streamed for stage in found.stages} == {True, False}
    (stage,) = place_parts(found, model.plan)
    assert (stage.first_part, stage.last_part) == (0, 6)
    assert stage.streamed
    needs = needs_of(found, model, machine.info)
    assert set(needs) == {"m0", HOST_MEMORY}
    assert needs["m0"].total_bytes < size
    assert needs[HOST_MEMORY].devices == ()
    assert 0 < needs[HOST_MEMORY].weight_bytes == needs[HOST_MEMORY].total_bytes
    named = with_devices(structs.replace(load, device="d0"), model, machine)
    assert named.stages == found.stages
