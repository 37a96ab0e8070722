from __future__ import annotations

from llmd.engine.placement.replanning import heirs, take_over
from llmd.engine.placement.stages import StageParts

STAGES = (StageParts("a", 0, 2), StageParts("b", 2, 5), StageParts("a", 5, 6), StageParts("c", 6, 9))


def test_devices_of_the_model_come_before_other_usable_ones() -> None:
    assert heirs(STAGES, {"b"}, ["d", "c", "b", "e"]) == ["a", "c", "d", "e"]
    assert heirs(STAGES, {"a", "b", "c"}, ["c", "d"]) == ["d"]
    assert heirs(STAGES, {"a", "b", "c"}, ["b"]) == []


def test_only_the_stages_of_lost_devices_move() -> None:
    assert take_over(STAGES, {"b"}, "d") == (StageParts("a", 0, 2), StageParts("d", 2, 5), *STAGES[2:])


def test_neighbours_on_one_device_become_one_stage() -> None:
    assert take_over(STAGES, {"b"}, "a") == (StageParts("a", 0, 6), StageParts("c", 6, 9))
    assert take_over(STAGES, {"a", "b", "c"}, "d") == (StageParts("d", 0, 9),)
