from __future__ import annotations

from llmd.api.messages import StageSpec
from llmd.engine.replanning import heirs, take_over

STAGES = (StageSpec("a", 0, 2), StageSpec("b", 2, 5), StageSpec("a", 5, 6), StageSpec("c", 6, 9))


def test_devices_of_the_model_come_before_other_usable_ones() -> None:
    assert heirs(STAGES, {"b"}, ["d", "c", "b", "e"]) == ["a", "c", "d", "e"]
    assert heirs(STAGES, {"a", "b", "c"}, ["c", "d"]) == ["d"]
    assert heirs(STAGES, {"a", "b", "c"}, ["b"]) == []


def test_only_the_stages_of_lost_devices_move() -> None:
    assert take_over(STAGES, {"b"}, "d") == (StageSpec("a", 0, 2), StageSpec("d", 2, 5), *STAGES[2:])


def test_neighbours_on_one_device_become_one_stage() -> None:
    assert take_over(STAGES, {"b"}, "a") == (StageSpec("a", 0, 6), StageSpec("c", 6, 9))
    assert take_over(STAGES, {"a", "b", "c"}, "d") == (StageSpec("d", 0, 9),)
