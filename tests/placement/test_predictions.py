"""What is predicted for a request on devices of known speed, and what it takes there in simulated time.

Devices are measured through the contract, as real ones are, and requests run through the whole engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.messages import Load, StageSpec
from llmd.cli.plan import split_of
from llmd.engine.composition import make_host
from llmd.engine.placement.alternatives import Alternative, Comparison, Measured
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import place_parts
from llmd.server.models.load_message import parse_split
from llmd.testing.throttled_device import Speed
from tests.daemon.profiling.simulated import Clock
from tests.docs.model_sizes import MODELS, write_headers
from tests.golden.models.mixtures import qwen3_moe
from tests.placement.simulated_machine import Machine, whole_layers

NUM_LAYERS = 8
WITHIN = 0.15
CARD = Speed(3e11, 3e13, 1e13, step_s=3e-4, part_s=5e-6, copy_bytes_per_s=1e10)
CPU = Speed(4e10, 1e12, 3e11, step_s=2e-5, part_s=3e-6)
OLD_CARD = Speed(1e11, 4e12, 1e12, step_s=5e-4, part_s=2e-5, copy_bytes_per_s=3e9)
SPEEDS = {"card": CARD, "cpu": CPU, "old": OLD_CARD}


@pytest.fixture
def machine(clock: Clock, tmp_path: Path) -> Machine:
    return Machine(clock, dict(make_host(tmp_path / "probes").architectures()), **SPEEDS)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    config = {**MODELS["Llama 3.1 8B"], "num_hidden_layers": NUM_LAYERS}
    directory = write_headers(config, tmp_path_factory.mktemp("models") / "m")
    return Load(str(directory), quant="q4", slots=1)


def stages_of(one: Alternative) -> tuple[StageSpec, ...]:
    return parse_split(split_of(one))


def assert_right(predicted: Alternative, measured: Measured) -> None:
    assert predicted.prompt_s == pytest.approx(measured.prompt_s, rel=WITHIN)
    assert measured.tokens_per_s
    assert predicted.tokens_per_s == pytest.approx(measured.tokens_per_s, rel=WITHIN)


def best_of(found: Comparison) -> Alternative:
    assert found.best is not None
    return found.alternatives[0]


@pytest.mark.parametrize("quant", [None, "q8", "q4"])
@pytest.mark.parametrize("chunk_len", [200, 256, 400])
def test_each_device_alone(machine: Machine, load: Load, quant: str | None, chunk_len: int) -> None:
    load = structs.replace(load, quant=quant, chunk_len=chunk_len)
    found = machine.compare(load)
    assert {one.name for one in found.alternatives} == set(SPEEDS)
    for one in found.alternatives:
        assert_right(one, machine.measure(load, stages_of(one), found))


@pytest.mark.parametrize("room", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("others", [("cpu",), ("old",), ("cpu", "old")])
def test_devices_that_share_a_model(
    machine: Machine, load: Load, room: float, others: tuple[str, ...]
) -> None:
    """The card has room for a share of the model; with two others, the old one has, too."""
    whole = sum(stage.num_bytes for stage in alone(machine.compare(load), "card").stages)
    rooms = dict.fromkeys(SPEEDS, 0) | dict.fromkeys(others, whole * 2) | {"card": int(room * whole)}
    if len(others) == 2:
        rooms["old"] = whole // 4
    found = machine.compare(load, **rooms)
    best = best_of(found)
    assert {stage.device for stage in best.stages} <= {"card", *others}
    assert len(best.stages) > 1
    assert_right(best, machine.measure(load, stages_of(best), found))


def test_each_stage_of_a_divided_model_takes_what_was_predicted_for_it(machine: Machine, load: Load) -> None:
    split = StageSpec("card", "embed", "3"), StageSpec("old", "4", "5"), StageSpec("cpu", "6", "head")
    divided = structs.replace(load, stages=split)
    with machine.opened(load) as model:
        on_devices = ModelOnDevices(divided, model, machine.candidates())
        predicted = on_devices.token_seconds(place_parts(divided, model.plan))
    assert machine.stage_seconds(load, split, machine.compare(load)) == pytest.approx(predicted, rel=WITHIN)


def bytes_on(machine: Machine, load: Load, choice: Sequence[StageSpec], device: str) -> int:
    """Return the bytes that the stages of a choice take of a device."""
    with machine.opened(load) as model:
        on_devices = ModelOnDevices(load, model, machine.candidates())
        stages = place_parts(structs.replace(load, stages=tuple(choice)), model.plan)
        number = list(machine.devices).index(device)
        return sum(
            sum(on_devices.sizes(number, stage.first_part, stage.last_part).values())
            for stage in stages
            if stage.device == device
        )


def alone(found: Comparison, name: str) -> Alternative:
    return next(one for one in found.alternatives if one.name == name)


@pytest.mark.parametrize("slower", ["cpu", "old"])
def test_a_slower_device_gets_only_what_memory_forces_there(
    machine: Machine, load: Load, slower: str
) -> None:
    """The faster one has no room for another layer."""
    only = {"card", slower}
    whole = sum(stage.num_bytes for stage in alone(machine.compare(load), "card").stages)
    rooms = dict.fromkeys(SPEEDS.keys() - only, 0) | {slower: 2 * whole}
    assert best_of(machine.compare(load, **rooms, card=whole)).name == "card"
    before_s = 0.0
    for percent in range(95, 0, -10):
        room = whole * percent // 100
        best = best_of(machine.compare(load, **rooms, card=room))
        assert best.request_s
        assert best.request_s >= before_s * 0.97, "less memory never helps"  # 3 %: the planner's tolerance
        before_s = best.request_s
        assert slower in best.name
        left = room - sum(stage.num_bytes for stage in best.stages if stage.device == "card")
        with machine.opened(load) as model:
            layer = sum(
                ModelOnDevices(load, model, machine.candidates()).sizes(0, 1, 3, begins=False).values()
            )
        moved = [name for stage in best.stages if stage.device == slower for name in stage.part_names]
        layers_moved = any(name[0].isdigit() for name in moved)
        assert not layers_moved or left < layer, f"{percent} %: the card has room for another layer"
    assert layers_moved


def test_feed_forward_parts_are_elsewhere_where_that_wins(clock: Clock, load: Load, tmp_path: Path) -> None:
    """The processor is slow at attention. The card has room for all of it, or for a few whole layers."""
    slow = structs.replace(CPU, attention_flops=2e9)
    machine = Machine(clock, dict(make_host(tmp_path / "probes").architectures()), card=CARD, cpu=slow)
    load = structs.replace(load, chunk_len=64)
    room = bytes_on(machine, load, attention_apart("card", "cpu"), "card")
    found = machine.compare(load, card=room)
    best = best_of(found)
    elsewhere = [name for stage in best.stages if stage.device == "cpu" for name in stage.part_names]
    assert sum(name.endswith(".ffn") for name in elsewhere) > NUM_LAYERS // 2
    measured = machine.measure(load, stages_of(best), found)
    assert_right(best, measured)
    for whole in whole_layers(NUM_LAYERS, most_whole_layers(machine, load, room), on="card", around="cpu"):
        assert measured.request_s < 0.9 * machine.measure(load, whole, found).request_s


def most_whole_layers(machine: Machine, load: Load, room: int) -> int:
    """Return how many whole layers the card has room for."""
    count = 1
    while (
        bytes_on(machine, load, next(whole_layers(NUM_LAYERS, count + 1, on="card", around="cpu")), "card")
        <= room
    ):
        count += 1
    return count


def attention_apart(card: str, other: str) -> tuple[StageSpec, ...]:
    """Return the attention of all layers on one device, and everything else on another."""
    names = [f"{layer}.{kind}" for layer in range(NUM_LAYERS) for kind in ("mixer", "ffn")]
    layers = [StageSpec(card if name.endswith(".mixer") else other, name, name) for name in names]
    return (StageSpec(other, "embed", "embed"), *layers, StageSpec(other, "head", "head"))


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """A model in the shape of Qwen3 30B-A3B, with few layers."""
    config = qwen3_moe(
        vocab_size=4096,
        hidden_size=2048,
        num_hidden_layers=NUM_LAYERS,
        num_attention_heads=32,
        num_key_value_heads=4,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
        mlp_only_layers=[],
        max_position_embeddings=4096,
    )
    return Load(str(write_headers(config, tmp_path_factory.mktemp("models") / "m")), quant="q4", slots=1)


@pytest.mark.parametrize("share", [pytest.param(0.3, marks=pytest.mark.exhaustive), 0.5])
def test_experts_are_on_the_processor_and_everything_else_on_a_small_card(
    clock: Clock, mixture: Load, tmp_path: Path, share: float
) -> None:
    """The card has room for a share of the experts. Dividing the model by whole layers takes longer, by what
    is predicted.
    """
    card = structs.replace(CARD, step_s=5e-5)
    slow = structs.replace(CPU, attention_flops=3e10)
    machine = Machine(clock, dict(make_host(tmp_path / "probes").architectures()), card=card, cpu=slow)
    (whole,) = alone(machine.compare(mixture), "card").stages
    room = int(whole.num_bytes - (1.0 - share) * whole.bytes_by_kind["experts"])
    found = machine.compare(mixture, card=room)
    best = best_of(found)
    elsewhere = [name for stage in best.stages if stage.device == "cpu" for name in stage.part_names]
    assert sum(name.endswith(".ffn") for name in elsewhere) >= NUM_LAYERS * (1.0 - share)
    assert not any(name.endswith(".mixer") or name.isdigit() for name in elsewhere)
    measured = machine.measure(mixture, stages_of(best), found)
    assert_right(best, measured)
    count = most_whole_layers(machine, mixture, room)
    gains = []
    for layers in whole_layers(NUM_LAYERS, count, on="card", around="cpu"):
        by_layers = machine.compare(structs.replace(mixture, stages=layers), card=room)
        predicted = next(one for one in by_layers.alternatives if stages_of(one) == layers)
        real = machine.measure(mixture, layers, found)
        assert predicted.request_s
        assert best.request_s
        gains.append((predicted.request_s / best.request_s, real.request_s / measured.request_s))
    for predicted_gain, gain in gains:
        assert gain > 1.1
        assert gain == pytest.approx(predicted_gain, rel=WITHIN)


def test_a_setting_says_of_how_many_layers_experts_are_on_the_processor(
    machine: Machine, mixture: Load
) -> None:
    found = machine.compare(structs.replace(mixture, cpu_experts=3), old=0)
    (divided,) = (one for one in found.alternatives if len(one.stages) > 1)
    elsewhere = [name for stage in divided.stages if stage.device == "cpu" for name in stage.part_names]
    assert [name for name in elsewhere if name[0].isdigit()] == ["0.ffn", "1.ffn", "2.ffn"]
    assert best_of(found).name == "card"  # it has room for all, and is faster alone
