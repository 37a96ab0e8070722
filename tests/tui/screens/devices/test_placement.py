from __future__ import annotations

from llmd_tui.screens.devices.placement import Use, letters, placed_models, use_of
from tests.tui.screens.devices.device_answers import GIB, MIB, PLAN, device, stage


def test_a_plan_has_the_device_of_each_layer() -> None:
    guide, small = placed_models(PLAN)
    assert (guide.devices, guide.num_layers, guide.size_bytes) == (
        ("cpu", "reference"),
        12,
        6 * GIB + 60 * MIB,
    )
    assert (guide.layer(5), guide.layer(6)) == ("cpu", "reference")
    assert small.devices == ("cpu",)


def test_a_layer_may_be_on_two_devices() -> None:
    plan = {
        "models": [
            {"name": "x", "stages": [stage("a", "layers 0-1.mixer", 0, 2), stage("b", "layer 1.ffn", 1, 2)]}
        ]
    }
    (model,) = placed_models(plan)
    assert (model.layer(0), model.layer(1)) == ("a", None)


def test_plans_of_newer_and_older_daemons_are_read() -> None:
    (new,) = placed_models(
        {"models": [{"name": "x", "stages": [{"device": "cpu", "measured_ms": 1.5, "new": 1}], "why": "y"}]}
    )
    assert (new.stages[0].measured_ms, new.stages[0].size_bytes) == (1.5, 0)
    assert placed_models({}) == []


def test_memory_is_divided_into_what_is_known() -> None:
    models = placed_models(PLAN)
    known = use_of(device("cpu", free_bytes=9 * GIB), models)
    assert known == Use(16 * GIB, weights=4 * GIB, kv=2 * GIB, steps=60 * MIB, other=GIB - 60 * MIB)
    assert known.free == 9 * GIB
    unknown = use_of(device("cpu"), models)
    assert unknown is not None
    assert (unknown.other, unknown.free) == (None, 10 * GIB - 60 * MIB)
    assert use_of(device("cuda", memory_bytes=None), models) is None


def test_devices_that_share_a_memory_share_its_use() -> None:
    models = placed_models(PLAN)
    shared = use_of(device("other", memory_id="host"), models)
    assert shared is not None
    assert shared.weights == 6 * GIB


def test_each_device_has_a_letter_of_its_own() -> None:
    assert letters(["cpu", "cuda:0", "reference", "cuda:1"]) == {
        "cpu": "C",
        "cuda:0": "U",
        "reference": "R",
        "cuda:1": "D",
    }
    assert letters(["1", "2"]) == {"1": "A", "2": "B"}
    assert letters([str(number) for number in range(27)])["26"] == "?"
