from __future__ import annotations

import pytest

from llmd.api import Part
from llmd.api.errors import ConfigError
from llmd.api.messages import Load
from llmd.api.plan import ModelPlan
from llmd.builtin.architectures import gemma4
from llmd.engine.placement.stages import (
    StageParts,
    cpu_expert_parts,
    first_gpu_part,
    part_names,
    parts_text,
    place_parts,
)
from llmd.models.headless import without_head
from llmd.server.models.load_message import parse_split
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from tests.golden.models.catalog import tiny_model

PLAN = TinyModel(layers=4).plan()
"""Embedding, mixer and feed-forward network of 4 layers, head: parts 0 to 9."""


def placed(split: str, plan: ModelPlan = PLAN) -> list[tuple[str, int, int]]:
    stages = place_parts(Load("m", stages=parse_split(split)), plan)
    return [(stage.device, stage.first_part, stage.last_part) for stage in stages]


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("0-3=a", [(0, 10)]),
        ("0-1=a,2=b,3=c", [(0, 5), (5, 7), (7, 10)]),
        ("embed=a,0-3=b,head=a", [(0, 1), (1, 9), (9, 10)]),
        ("embed-1=a,2-head=b", [(0, 5), (5, 10)]),
        ("embed=a,0-3=b", [(0, 1), (1, 10)]),
        ("0-3=a,head=b", [(0, 9), (9, 10)]),
        ("0.mixer=a,0.ffn-2.mixer=b,2.ffn-3=a", [(0, 2), (2, 6), (6, 10)]),
    ],
)
def test_a_stage_has_the_parts_that_it_names(split: str, expected: list[tuple[int, int]]) -> None:
    assert [(first, last) for _, first, last in placed(split)] == expected


@pytest.mark.parametrize(
    ("split", "reason"),
    [
        (
            "0-1=a,2-5=b",
            "--split begins a stage with layer 2.mixer, but layer 3 mixer reads the keys of layer 1",
        ),
        ("0-4=a,5=b", "layer 5.mixer, but layer 5 mixer reads the keys of layer 2"),
    ],
)
def test_a_stage_does_not_begin_with_a_part_that_depends_on_the_one_before(split: str, reason: str) -> None:
    shared = gemma4.plan(tiny_model("gemma4-shared").config, None)
    assert placed("0=a,1-5=b", shared) == [("a", 0, 3), ("b", 3, 14)]
    with pytest.raises(ConfigError, match=reason):
        placed(split, shared)


def test_neighbours_on_one_device_are_one_stage_if_some_are_streamed() -> None:
    stages = place_parts(Load("m", stages=parse_split("0=a,1-2=a/stream,3=a")), PLAN)
    assert stages == (StageParts("a", 0, 10, (3, 4, 5, 6)),)
    stages = place_parts(Load("m", stages=parse_split("0=a,1=b/stream,2-3=a")), PLAN)
    assert stages == (StageParts("a", 0, 3), StageParts("b", 3, 5, (3, 4)), StageParts("a", 5, 10))
    assert len(place_parts(Load("m", stages=parse_split("0-1=a,2-3=a")), PLAN)) == 2


@pytest.mark.parametrize(("gpu_layers", "first"), [(0, 10), (1, 7), (4, 1), (5, 0), (99, 0)])
def test_the_last_layers_and_the_head_run_on_graphics_cards(gpu_layers: int, first: int) -> None:
    assert first_gpu_part(PLAN, gpu_layers) == first


def test_feed_forward_parts_of_the_first_layers_with_experts_stay_in_main_memory() -> None:
    mixture = TinyModel(layers=4, experts=5).plan()
    assert cpu_expert_parts(mixture, 0) == frozenset()
    assert cpu_expert_parts(mixture, 2) == {2, 4}
    assert cpu_expert_parts(mixture, 99) == {2, 4, 6, 8}
    assert cpu_expert_parts(PLAN, 99) == frozenset()


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ((0, 10), ("embed", "0", "1", "2", "3", "head")),
        ((0, 2), ("embed", "0.mixer")),
        ((2, 6), ("0.ffn", "1", "2.mixer")),
        ((9, 10), ("head",)),
    ],
)
def test_parts_have_the_names_that_a_split_uses(parts: tuple[int, int], names: tuple[str, ...]) -> None:
    assert part_names(PLAN, *parts) == names


def test_devices_stay_with_their_parts() -> None:
    assert placed("embed=a,0-3=b,head=c") == [("a", 0, 1), ("b", 1, 9), ("c", 9, 10)]


def test_one_device_has_all_parts() -> None:
    (stage,) = place_parts(Load("m", device="cpu"), PLAN)
    assert (stage.device, stage.first_part, stage.last_part) == ("cpu", 0, 10)


def test_the_final_norm_or_classifier_is_the_head_of_a_model_that_embeds() -> None:
    assert placed("0-3=a,head=b", without_head(PLAN)) == [("a", 0, 9), ("b", 9, 10)]
    assert placed("0-1=a,head=b", TinyEncoder(labels=1).plan()) == [("a", 0, 5), ("b", 5, 6)]
    assert placed("0=a,1=b", TinyEncoder().plan()) == [("a", 0, 3), ("b", 3, 5)]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("0-1=a,3=b", "leaves out layer 2"),
        ("0-2=a,2-3=b", "names layer 2 twice"),
        ("0-3=a,1-3=b", "names layers 1-3 twice"),
        ("0-3=a,2=b", "names layer 2 twice"),
        ("1-3=a", "leaves out layer 0"),
        ("2-3=a,0-1=b", "leaves out layers 0-1"),
        ("0-1=a", "leaves out layers 2-3"),
        ("embed=a,head=b", "leaves out layers 0-3"),
        ("head=a", "leaves out layers 0-3"),
        ("0-3=a,head=b,head=c", "names head twice"),
        ("embed=a,embed-3=b", "names embed twice"),
        ("0.ffn-3=a", "leaves out layer 0.mixer"),
        ("0-1.mixer=a,2-3=b", "leaves out layer 1.ffn"),
        ("0-1.mixer=a,1.mixer-3=b", "names layer 1.mixer twice"),
        ("0-4=a", "names 4, which the model lacks"),
        ("1-0=a", "names 1-0, which ends before it begins"),
    ],
)
def test_a_split_must_name_every_part_once(split: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--split {message} \(") as caught:
        placed(split)
    assert "layers 0-3 in order" in caught.value.hint


def test_an_encoder_without_a_classifier_has_no_head() -> None:
    with pytest.raises(ConfigError, match="names head, which the model lacks"):
        placed("0-1=a,head=b", TinyEncoder().plan())


def test_all_parts_of_a_layer_belong_to_it() -> None:
    parts = (Part("again", "mixer", 3, ()), *PLAN.parts[-1:])
    plan = ModelPlan("t", 40, 5, 16, 16, (), (*PLAN.parts[:-1], *parts))
    assert placed("0-2=a,3=b,head=a", plan) == [("a", 0, 7), ("b", 7, 10), ("a", 10, 11)]


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (0, 10, "layers 0-3"),
        (0, 3, "layer 0"),
        (7, 10, "layer 3"),
        (0, 1, "embed"),
        (9, 10, "head"),
        (0, 2, "layer 0.mixer"),
        (2, 5, "layers 0.ffn-1"),
        (3, 6, "layers 1-2.mixer"),
    ],
)
def test_parts_have_a_name_for_people(first: int, last: int, text: str) -> None:
    assert parts_text(PLAN, first, last) == text
