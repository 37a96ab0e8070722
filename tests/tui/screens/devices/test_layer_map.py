from __future__ import annotations

from llmd_tui.screens.devices.layer_map import LayerMap, map_of
from llmd_tui.screens.devices.placement import PlacedModel, placed_models
from llmd_tui.state.daemon_state import Model, Verdict
from tests.tui.pilots import Shown, text
from tests.tui.screens.devices.device_answers import PLAN, stage


def test_each_part_is_a_cell_with_the_letter_of_its_device() -> None:
    guide = placed_models(PLAN)[0]
    assert map_of(guide).plain.splitlines() == [
        "guide  12 layers on cpu and reference, 6.1 GiB",
        "embedding C  layers CCCCCCRRRR RR  head R",
        "C cpu: embedding, layers 0-5: 2.0 GiB of weights, 1.0 GiB of KV cache, 30.0 MiB of step buffers",
        "R reference: layers 6-11, head: 2.0 GiB of weights, 1.0 GiB of KV cache, 30.0 MiB of step buffers",
    ]


def test_devices_have_colours_besides_letters() -> None:
    spans = [str(span.style) for span in map_of(placed_models(PLAN)[0]).spans]
    assert any("cyan" in style for style in spans)
    assert any("magenta" in style for style in spans)


def test_stages_of_embedding_and_head_alone_are_named() -> None:
    stages = [
        stage("cpu", "embed", 0, 0, kv_bytes=0),
        stage("gpu", "layers 0-1", 0, 2),
        stage("cpu", "head", 0, 0, kv_bytes=0, step_bytes=0),
    ]
    (model,) = placed_models({"models": [{"name": "x", "stages": stages}]})
    shown = map_of(model).plain
    assert "embedding C  layers GG  head C" in shown
    assert "C cpu: embed: 2.0 GiB of weights, 30.0 MiB of step buffers" in shown
    assert "C cpu: head: 2.0 GiB of weights" in shown.splitlines()


def test_a_layer_on_two_devices_is_marked() -> None:
    stages = [stage("a", "layers 0-1.mixer", 0, 2), stage("b", "layer 1.ffn", 1, 2)]
    (model,) = placed_models({"models": [{"name": "x", "stages": stages}]})
    assert "layers A/  head B" in map_of(model).plain


def test_parts_of_layers_have_cells_of_their_own() -> None:
    parts = [
        ["embed", "a"],
        *([str(number), "a"] for number in range(10)),
        ["10.mixer", "a"],
        ["10.ffn", "b"],
    ]
    model = {
        "name": "x",
        "stages": [stage("a", "", 0, 11), stage("b", "", 10, 11)],
        "map": [*parts, ["norm", "b"]],
    }
    (placed,) = placed_models({"models": [model]})
    assert "embedding A  layers AAAAAAAAAA AB  norm B" in map_of(placed).plain


def test_the_daemon_says_why_a_stage_is_on_its_device() -> None:
    stages = [stage("cpu", "layers 0-1", 0, 2, reason="the setting device names it")]
    (model,) = placed_models({"models": [{"name": "x", "stages": stages}]})
    assert map_of(model).plain.endswith("30.0 MiB of step buffers; why: the setting device names it")


def test_times_are_shown_if_the_daemon_tells_them() -> None:
    stages = [stage("cpu", "layers 0-1", 0, 2, predicted_ms=1.25, measured_ms=1.5)]
    (model,) = placed_models({"models": [{"name": "x", "stages": stages}]})
    assert "a step takes 1.25 ms predicted, 1.50 ms measured" in map_of(model).plain


def test_the_daemon_says_why() -> None:
    verdicts = (Verdict("on the CPU because\nno GPU is usable", "warn"), Verdict("decode at 0.9"))
    shown = map_of(placed_models(PLAN)[0], Model("guide", verdicts=verdicts)).plain
    assert shown.splitlines()[-2:] == ["! on the CPU because no GPU is usable", "· decode at 0.9"]


def test_a_model_without_stages_is_no_error() -> None:
    assert map_of(PlacedModel("x")).plain.splitlines()[1] == "its stages are not known"


async def test_an_empty_map_says_why_it_is_empty() -> None:
    app = Shown(layer_map := LayerMap())
    async with app.run_test(size=(60, 6)) as pilot:
        layer_map.show([], {})
        await pilot.pause()
        assert "No model is loaded" in text(app)
