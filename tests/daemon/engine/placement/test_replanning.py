from __future__ import annotations

import pytest

from llmd.api.messages import Load
from llmd.engine.placement.candidates import MachineDevices
from llmd.engine.placement.replanning import heirs, stages_after_loss, take_over
from llmd.engine.placement.stages import StageParts
from llmd.models.open_model import OpenModel
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.serving.machine import machine_of

STAGES = (StageParts("a", 0, 2), StageParts("b", 2, 5), StageParts("a", 5, 6), StageParts("c", 6, 9))
WHOLE = (StageParts("d0", 0, 6),)


@pytest.fixture
def devices() -> MachineDevices:
    infos = [one.info for one in candidates(QUICK, SLOW, QUICK)]
    return machine_of(infos, {"d1": SLOW, "d2": QUICK})


def on(device: str) -> tuple[StageParts, ...]:
    return (StageParts(device, 0, 6),)


def test_the_plan_comes_first_then_the_other_devices(
    load: Load, model: OpenModel, devices: MachineDevices
) -> None:
    assert list(stages_after_loss(load, model, devices, WHOLE, {"d0"}, {})) == [on("d2"), on("d1")]


def test_a_plan_counts_what_is_free_of_memories_with_open_devices(
    load: Load, model: OpenModel, devices: MachineDevices
) -> None:
    found = stages_after_loss(load, model, devices, WHOLE, {"d0"}, {"m2": 1000})
    assert list(found) == [on("d1"), on("d2")]


def test_without_rates_the_devices_are_tried_in_their_order(load: Load, model: OpenModel) -> None:
    devices = machine_of([one.info for one in candidates(QUICK, SLOW, QUICK)])
    assert list(stages_after_loss(load, model, devices, WHOLE, {"d0"}, {})) == [on("d1"), on("d2")]
    split = (StageParts("d0", 0, 3), StageParts("d1", 3, 6))
    assert list(stages_after_loss(load, model, None, split, {"d0"}, {})) == [on("d1")]


def test_devices_of_the_model_come_before_other_usable_ones() -> None:
    assert heirs(STAGES, {"b"}, ["d", "c", "b", "e"]) == ["a", "c", "d", "e"]
    assert heirs(STAGES, {"a", "b", "c"}, ["c", "d"]) == ["d"]
    assert heirs(STAGES, {"a", "b", "c"}, ["b"]) == []


def test_only_the_stages_of_lost_devices_move() -> None:
    assert take_over(STAGES, {"b"}, "d") == (StageParts("a", 0, 2), StageParts("d", 2, 5), *STAGES[2:])


def test_neighbours_on_one_device_become_one_stage() -> None:
    assert take_over(STAGES, {"b"}, "a") == (StageParts("a", 0, 6), StageParts("c", 6, 9))
    assert take_over(STAGES, {"a", "b", "c"}, "d") == (StageParts("d", 0, 9),)
