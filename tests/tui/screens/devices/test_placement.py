from __future__ import annotations

from llmd_tui.screens.devices.placement import Use, letters, placed_models, use_of
from tests.tui.screens.devices.device_answers import DEVICES, GIB, MIB, PLAN, device, stage


def test_a_plan_has_the_device_of_each_part() -> None:
    guide, small = placed_models(PLAN)
    assert (guide.devices, guide.num_layers, guide.size_bytes) == (
        ("cpu", "reference"),
        12,
        6 * GIB + 60 * MIB,
    )
    assert guide.parts[:2] == (("embed", "cpu"), ("0", "cpu"))
    assert guide.parts[7:] == (
        *((str(number), "reference") for number in range(6, 12)),
        ("head", "reference"),
    )
    assert small.devices == ("cpu",)


def test_a_layer_may_be_on_two_devices() -> None:
    stages = [stage("a", "layers 0-1.mixer", 0, 2), stage("b", "layer 1.ffn", 1, 2)]
    (old,) = placed_models({"models": [{"name": "x", "stages": stages}]})
    assert old.parts[2] == ("1", "")
    parts = [["embed", "a"], ["0", "a"], ["1.mixer", "a"], ["1.ffn", "b"], ["head", "b"]]
    (new,) = placed_models({"models": [{"name": "x", "stages": stages, "map": parts}]})
    assert new.parts == tuple(map(tuple, parts))


def test_plans_of_newer_and_older_daemons_are_read() -> None:
    (new,) = placed_models(
        {"models": [{"name": "x", "stages": [{"device": "cpu", "measured_ms": 1.5, "new": 1}], "why": "y"}]}
    )
    assert (new.stages[0].measured_ms, new.stages[0].size_bytes) == (1.5, 0)
    assert placed_models({}) == []


def test_the_daemon_says_how_memories_are_used() -> None:
    memories = DEVICES["memories"]
    use = use_of(DEVICES["devices"][0], [], memories)
    assert use == Use(32 * GIB, weights=6 * GIB, kv=3 * GIB, steps=90 * MIB, other=2 * GIB)
    assert use.free == 21 * GIB - 90 * MIB
    assert use_of(device("gpu", memory_id="card"), [], memories) == Use(16 * GIB)


def test_of_an_older_daemon_only_the_use_by_models_is_known() -> None:
    models = placed_models(PLAN)
    use = use_of(device("cpu"), models)
    assert use == Use(16 * GIB, weights=4 * GIB, kv=2 * GIB, steps=60 * MIB)
    assert use.free == 10 * GIB - 60 * MIB
    assert use_of(device("cuda", memory_bytes=None), models) is None


def test_each_device_has_a_letter_of_its_own() -> None:
    assert letters(["cpu", "cuda:0", "reference", "cuda:1"]) == {
        "cpu": "C",
        "cuda:0": "U",
        "reference": "R",
        "cuda:1": "D",
    }
    assert letters(["1", "2"]) == {"1": "A", "2": "B"}
    assert letters([str(number) for number in range(27)])["26"] == "?"
