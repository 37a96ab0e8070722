"""A model moves to the devices that are left, and its requests go on with the same tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.api.errors import DeviceError, DeviceLostError, DeviceMemoryError, LlmdError
from llmd.api.messages import Load, StageSpec
from llmd.api.results import Failed
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.placement.placer import MAX_HALVINGS
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW
from tests.serving.failing_device import FailingDevice
from tests.serving.machine import machine_of
from tests.serving.mixed_requests import NUM_STREAMS, Answers, answers
from tests.serving.model import write_model

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
SPLIT = (StageSpec("a", "0", "0"), StageSpec("b", "1", "1"))
MakeModel = Callable[..., LoadedModel]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def make(directory: Path) -> Iterator[MakeModel]:
    """Load the model on given devices, all of which are usable."""
    with ExitStack() as stack:

        def load(
            *devices: FailingDevice, known: Mapping[str, DeviceProfile] | None = None, **options: Any
        ) -> LoadedModel:
            by_name = {device.info.name: device for device in devices}
            chosen: dict[str, Any] = {"device": devices[0].info.name, "slots": 8, "kv_dtype": "f32"} | options
            message = Load(str(directory), **chosen)
            devices_left = machine_of([device.info for device in devices], known)
            model = load_model(
                message, ARCHITECTURES, by_name.__getitem__, lambda _: None, devices=devices_left
            )
            stack.callback(model.close)
            return model

        yield load


@pytest.fixture(scope="module")
def undisturbed(directory: Path) -> Answers:
    message = Load(str(directory), device="a", slots=8, kv_dtype="f32")
    model = load_model(message, ARCHITECTURES, FailingDevice, lambda _: None)
    found = answers(model.core)
    model.close()
    assert len(found) == NUM_STREAMS
    assert not any(isinstance(one, Failed) for many in found.values() for one in many)
    return found


def recovered(model: LoadedModel) -> Answers:
    def recover(error: DeviceError) -> tuple[Failed, ...]:
        assert isinstance(error, DeviceLostError | DeviceMemoryError)
        return model.recover(error)[1]

    return answers(model.core, recover)


def placed(model: LoadedModel) -> list[tuple[str, str]]:
    return [(one.device, one.parts) for one in model.loaded.stages]


@pytest.mark.parametrize(
    ("lost", "call", "after"),
    [("a", "submit", 9), ("a", "hidden", 0), ("b", "submit", 3), ("b", "wait", 11)],
)
def test_all_streams_go_on_where_the_other_stage_is(
    make: MakeModel, undisturbed: Answers, lost: str, call: str, after: int
) -> None:
    a, b = devices = FailingDevice("a"), FailingDevice("b")
    model = make(*devices, stages=SPLIT)
    gone, left = (a, b) if lost == "a" else (b, a)
    gone.lose(call, after)
    assert recovered(model) == undisturbed
    assert placed(model) == [(left.info.name, "layers 0-1")]
    assert left.taken == [0, 1], "the weights that it has are not loaded again"
    assert (gone.is_closed, left.is_closed) == (True, False)
    (notice,) = model.loaded.notices
    assert notice == f"devices were lost ({lost}): the model runs on {left.info.name} instead"


@pytest.mark.parametrize("call", ["load", "stage"])
def test_a_device_that_is_lost_while_the_model_loads_is_replaced(
    make: MakeModel, undisturbed: Answers, call: str
) -> None:
    a, b = FailingDevice("a"), FailingDevice("b")
    b.lose(call)
    model = make(a, b, stages=SPLIT)
    assert placed(model) == [("a", "layers 0-1")]
    assert [notice for notice in model.loaded.notices if "lost" in notice]
    assert b.is_closed
    assert recovered(model) == undisturbed


def test_a_named_device_is_replaced_by_the_best_one_that_has_room(
    make: MakeModel, undisturbed: Answers
) -> None:
    devices = gpu, full, lost_too, cpu = (
        FailingDevice("gpu"),
        FailingDevice("full", has_room=False),
        FailingDevice("unsteady"),
        FailingDevice("cpu"),
    )
    model = make(*devices)
    gpu.lose("wait", 5)
    lost_too.lose("stage")
    assert recovered(model) == undisturbed
    assert placed(model) == [("cpu", "layers 0-1")]
    assert [one.info.name for one in devices if one.is_closed] == ["gpu", "unsteady"]
    assert full.taken == []
    assert cpu.taken == [0]


def test_the_fastest_of_the_devices_that_are_left_gets_the_model(
    make: MakeModel, undisturbed: Answers
) -> None:
    """The slow device comes first in the order of usable devices."""
    gpu, slow, quick = devices = [FailingDevice(name) for name in ("gpu", "slow", "quick")]
    model = make(*devices, known={"slow": SLOW, "quick": QUICK})
    gpu.lose("wait", 5)
    assert recovered(model) == undisturbed
    assert placed(model) == [("quick", "layers 0-1")]
    assert (quick.taken, slow.taken) == ([0], [])


def test_a_plan_that_does_not_work_gives_way_to_another_device(make: MakeModel, undisturbed: Answers) -> None:
    gpu, slow, quick = FailingDevice("gpu"), FailingDevice("slow"), FailingDevice("quick", has_room=False)
    model = make(gpu, slow, quick, known={"slow": SLOW, "quick": QUICK})
    gpu.lose("wait", 5)
    assert recovered(model) == undisturbed
    assert placed(model) == [("slow", "layers 0-1")]


def test_a_device_may_be_lost_after_another(make: MakeModel, undisturbed: Answers) -> None:
    devices = [FailingDevice(name) for name in "abc"]
    devices[0].lose("submit", 6)
    devices[1].lose("wait", 6)
    model = make(*devices)
    assert recovered(model) == undisturbed
    assert (placed(model), model.epoch) == ([("c", "layers 0-1")], 2)


def test_weights_that_do_not_fit_with_the_earlier_ones_are_loaded_without_them(make: MakeModel) -> None:
    a, b = FailingDevice("a"), FailingDevice("b")
    model = make(a, b, stages=SPLIT)
    b.is_lost = True
    a.shares = False
    model.recover(DeviceLostError("gone", devices=("b",)))
    assert a.taken == [0, 0]
    assert placed(model) == [("a", "layers 0-1")]


def full_device(name: str, memory_id: str, memory_bytes: int = 1 << 30) -> FailingDevice:
    """A device with a memory of its own, all of it free."""
    device = FailingDevice(name)
    device.info = structs.replace(device.info, memory_id=memory_id, memory_bytes=memory_bytes)
    device.room = lambda: memory_bytes
    return device


def with_pressure(model: LoadedModel, device: FailingDevice, room: int, after: int = 1 << 28) -> Answers:
    """Run all streams. After some steps, ``room`` bytes of the device's memory are free, ``after`` bytes once
    the stage is closed.
    """
    both = device.num_open
    steps = 0

    def step_done() -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            device.room = lambda: room if device.num_open == both else after
            model.watch._next_s = 0.0
        model.relieve()

    return answers(model.core, after_step=step_done)


def test_a_model_moves_out_of_a_memory_that_others_fill(make: MakeModel, undisturbed: Answers) -> None:
    a, b = full_device("a", "card-a"), full_device("b", "card-b")
    model = make(a, b, known={"a": QUICK, "b": SLOW}, stages=())
    assert placed(model) == [("a", "layers 0-1")]
    assert with_pressure(model, a, 1000, 1 << 26) == undisturbed
    assert placed(model) == [("b", "layers 0-1")]
    (notice,) = [one for one in model.loaded.notices if "filled" in one]
    assert notice == "other programs filled the memory of a device: the model runs on b now"


def test_without_another_device_the_cache_gets_smaller(make: MakeModel, undisturbed: Answers) -> None:
    a = full_device("a", "card-a", 1 << 24)
    model = make(a, kv_memory=1 << 22)
    before = model.loaded.stages[0]
    most = before.weight_bytes + before.step_bytes + before.kv_bytes // 2
    reserve = round(0.12 * (1 << 24))
    assert with_pressure(model, a, 1000, most - before.weight_bytes + reserve) == undisturbed
    (stage,) = model.loaded.stages
    assert 0.8 * most < stage.size_bytes <= most
    assert "filled" in model.loaded.notices[-1]


def test_if_not_even_the_weights_are_left_room_the_cache_is_halved(
    make: MakeModel, undisturbed: Answers
) -> None:
    a = full_device("a", "card-a", 1 << 24)
    model = make(a, kv_memory=1 << 22)
    before = model.loaded.stages[0].kv_bytes
    assert with_pressure(model, a, 1000, 1 << 21) == undisturbed
    assert model.loaded.stages[0].kv_bytes == before // 2
    assert "KV pool was reduced" in model.loaded.notices[-1]


def test_a_model_stays_while_there_is_room(make: MakeModel, undisturbed: Answers) -> None:
    a = full_device("a", "card-a")
    model = make(a)
    assert with_pressure(model, a, 1 << 28) == undisturbed
    assert model.epoch == 0


@pytest.mark.parametrize("others", [(), (("c", False),)], ids=["none is left", "nothing fits"])
def test_without_another_device_the_error_names_the_reasons(
    make: MakeModel, others: tuple[tuple[str, bool], ...]
) -> None:
    device = FailingDevice("a")
    model = make(device, *(FailingDevice(name, has_room=room) for name, room in others))
    device.lose("submit")
    with pytest.raises(DeviceLostError, match=r"^a: lost \(a: it does not answer\)") as lost:
        recovered(model)
    assert ("do not fit c" if others else "none is left") in lost.value.message
    assert lost.value.devices == ("a",)


def test_a_loss_of_an_unknown_device_is_an_error(make: MakeModel) -> None:
    model = make(FailingDevice("a"), FailingDevice("b"))
    with pytest.raises(DeviceLostError, match=r"^b: gone"):
        model.recover(DeviceLostError("gone", devices=("b",)))


def test_out_of_memory_halves_the_pool_and_all_streams_go_on(make: MakeModel, undisturbed: Answers) -> None:
    device = FailingDevice("a")
    model = make(device, kv_memory=1 << 22)
    before = model.loaded.stages[0].kv_bytes
    device.exhaust("wait", 7)
    assert recovered(model) == undisturbed
    assert before // 4 < model.loaded.stages[0].kv_bytes <= before // 2
    assert "KV pool" in model.loaded.notices[-1]
    assert device.taken == [0], "the weights stay"
    assert not device.is_closed


def test_a_device_that_is_always_out_of_memory_is_an_error(make: MakeModel) -> None:
    model = make(FailingDevice("a"))
    for _ in range(MAX_HALVINGS):
        model.recover(DeviceMemoryError("no room"))
    with pytest.raises(DeviceMemoryError, match="no room"):
        model.recover(DeviceMemoryError("no room"))


def test_a_device_that_is_lost_while_its_pool_shrinks_is_replaced(make: MakeModel) -> None:
    a, b = FailingDevice("a"), FailingDevice("b")
    model = make(a, b)
    a.lose("stage")
    model.recover(DeviceMemoryError("no room"))
    assert placed(model) == [("b", "layers 0-1")]


@pytest.mark.parametrize("is_lost", [False, True])
def test_everything_is_closed_in_the_end(make: MakeModel, *, is_lost: bool) -> None:
    a, b = FailingDevice("a"), FailingDevice("b")
    model = make(a, b, stages=SPLIT)
    a.is_lost = is_lost
    if is_lost:
        model.recover(DeviceLostError("gone", devices=("a",)))
    model.close()
    assert (a.is_closed, b.is_closed) == (True, True)
    assert (a.num_open, b.num_open) == (0, 0)


def test_nothing_stays_open_when_the_model_cannot_move(make: MakeModel) -> None:
    a, b = FailingDevice("a"), FailingDevice("b")
    model = make(a, b, stages=SPLIT)
    b.has_room = False
    with pytest.raises(LlmdError, match="do not fit b"):
        model.recover(DeviceLostError("gone", devices=("a",)))
    model.close()
    assert (a.num_open, b.num_open) == (0, 0)
