"""What is said of a model that does not run as it should, and when nothing is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import DeviceInfo, DeviceOptions
from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.kernel_use import KernelUse, SlowPath
from llmd.api.messages import Load, Loaded, MemoryReport, StageReport, StageSpec
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction, WholeModel
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.model_facts import ModelFacts, Verdict
from llmd.server.telemetry.placement_verdicts import LEAST_STEPS, PLACEMENT_RULES
from llmd.server.telemetry.processor_use import OthersUse

MIB = 1 << 20
CPU = StageReport("cpu", "layers 2-3", 100 * MIB, 10, 2)
CARD = StageReport("gpu:0", "layers 0-1", 100 * MIB, 10, 2, memory_id="card")
INFOS = {
    "cpu": DeviceInfo("cpu", "cpu", 1, 1 << 34, (), (), ()),
    "gpu:0": DeviceInfo("gpu:0", "gpu", 9, 200 * MIB, (), (), (), memory_id="card", aliases=("GPU-1",)),
}
DEVICES = DeviceFacts(
    read_bytes_per_s={"cpu": 1e10, "gpu:0": 1e11},
    are_measured=True,
    kv_bytes_per_s={"cpu": 1e9, "gpu:0": 1e10},
    infos=INFOS,
    uses_threads=frozenset({"cpu"}),
)
ALONE = {"cpu": WholeModel(0.02, 300 * MIB), "gpu:0": WholeModel(0.005, 300 * MIB)}


def loaded_on(*stages: StageReport, memories: tuple[MemoryReport, ...] = ()) -> Loaded:
    return Loaded("llama", 10, 512, 512, 1, ("f32",), stages, kv_tokens=2048, load_s=0.1, memories=memories)


def said(*stages: StageReport, **facts: Any) -> list[Verdict]:
    known = {"loaded": loaded_on(*stages), "devices": DEVICES, "asked": Load("")} | facts
    model = ModelFacts(name="tiny", **known)
    return [verdict for rule in PLACEMENT_RULES for verdict in rule(model)]


BOTH = Prediction((0.003, 0.01), ALONE)


def test_a_model_is_spilled_if_one_device_alone_would_be_faster() -> None:
    (only,) = said(CARD, CPU, prediction=BOTH)
    assert (only.level, only.state) == ("warn", "spilled")
    assert only.text == (
        "spilled: layers 2-3 (cpu) not on gpu:0, because the whole model takes 300.0 MiB there,"
        " and it has 200.0 MiB"
    )
    assert only.fix.startswith("`llmd plan tiny` shows what fits")


def test_a_budget_may_be_the_reason() -> None:
    limited = Load("", device_options={"gpu:0": DeviceOptions(memory_bytes=150 * MIB)})
    (only,) = said(CARD, CPU, prediction=BOTH, asked=limited)
    assert only.text.endswith("takes 300.0 MiB there, and the setting memory_budget allows 150.0 MiB")


def test_other_programs_may_have_had_the_memory() -> None:
    large = structs.replace(INFOS["gpu:0"], memory_bytes=400 * MIB)
    devices = structs.replace(DEVICES, infos=INFOS | {"gpu:0": large})
    (only,) = said(CARD, CPU, prediction=BOTH, devices=devices)
    assert only.text.endswith("takes 300.0 MiB there, and not so much of its 400.0 MiB was free")


@pytest.mark.parametrize(
    "change",
    [
        {"prediction": None},
        {"prediction": Prediction((0.001, 0.002), ALONE)},  # the division is faster than any device
        {"prediction": Prediction((0.003, 0.01), {})},  # no device can run it alone
        {"asked": Load("", stages=(StageSpec("gpu:0", "embed", "1"), StageSpec("cpu", "2", "head")))},
        {"asked": Load("", gpu_layers=2)},
    ],
)
def test_other_divided_models_are_not_spilled(change: dict[str, Any]) -> None:
    assert said(CARD, CPU, **{"prediction": BOTH} | change) == []


STREAMED = structs.replace(CARD, streamed_bytes=50 * MIB)


def test_streamed_weights_are_a_warning_unless_they_were_asked_for() -> None:
    (only,) = said(STREAMED)
    text = "streamed: each step copies 50.0 MiB of weights from main memory to gpu:0"
    assert (only.level, only.text) == ("warn", f"{text}, because its memory has no room for them")
    wanted = Load("", stages=(StageSpec("gpu:0", "embed", "head", streamed=True),))
    (only,) = said(STREAMED, asked=wanted)
    assert (only.level, only.text) == ("info", f"{text}, as the setting split says")


def test_experts_that_are_read_from_the_disk_are_a_warning() -> None:
    read = structs.replace(report(20, 0.5), expert_cache=ExpertCacheUse(65, 35, 1, 50 * MIB))
    (only,) = said(CPU, report=read)
    assert (only.level, only.state) == ("warn", "streamed")
    assert only.text == (
        "streamed: 35% of the experts that steps used were read from the disk,"
        " because memory has room for 50.0 MiB of them"
    )
    unused = structs.replace(read, expert_cache=ExpertCacheUse(0, 0, 0, 0))
    assert said(CPU, report=unused) == []


def test_experts_that_a_card_reads_from_main_memory_are_a_warning() -> None:
    read = structs.replace(report(20, 0.5), expert_cache=ExpertCacheUse(65, 35, 1, 50 * MIB))
    (only,) = said(structs.replace(CARD, main_memory_expert_bytes=90 * MIB), report=read)
    assert only.text == (
        "streamed: 35% of the experts that steps used were read from main memory,"
        " because the memory of gpu:0 has room for 50.0 MiB of them"
    )


def report(steps: int, step_s: float, kv_bytes: int = 0) -> Report:
    bare = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 128)
    return structs.replace(
        bare,
        decode_steps=steps,
        single_steps=steps,
        single_s=steps * step_s,
        decode_kv_bytes=steps * kv_bytes,
    )


ON_CARD = Prediction((0.005,), ALONE)


def test_a_device_is_throttled_if_its_steps_take_longer_than_predicted() -> None:
    (only,) = said(CARD, prediction=ON_CARD, report=report(20, 0.011), before=report(10, 0.011), seconds=3.0)
    assert (only.level, only.state) == ("warn", "throttled")
    assert only.text == (
        "throttled: a step of one sequence took 11.0 ms in the last 3 s, 5.0 ms were predicted for gpu:0:"
        " the clocks may be lowered (heat, a power limit), or other programs use the device"
    )
    assert "`llmd plan tiny --verify`" in only.fix
    (only,) = said(CARD, prediction=ON_CARD, report=report(10, 0.011))
    assert "took 11.0 ms since it was loaded" in only.text


def divided(card_s: float, cpu_s: float, step_s: float = 0.05) -> dict[str, Any]:
    """Return facts of a model on a card and the processor, with what each has worked on a step."""
    times = {"timed_steps": 10, "stages_s": (10 * card_s, 10 * cpu_s)}
    asked = Load("", stages=(StageSpec("gpu:0", "embed", "1"), StageSpec("cpu", "2", "head")))
    return {
        "prediction": Prediction((0.005, 0.02), ALONE),
        "report": structs.replace(report(10, step_s), **times),
        "asked": asked,
    }


def test_the_device_of_a_divided_model_that_is_slow_is_named() -> None:
    (only,) = said(CARD, CPU, **divided(0.011, 0.02))
    assert (only.level, only.state) == ("warn", "throttled")
    assert only.text.startswith(
        "throttled: gpu:0 worked 11.0 ms on a step of one sequence since it was loaded, 5.0 ms were predicted: "
    )
    busy = OthersUse(1.5, 2)
    (only,) = said(CARD, CPU, **divided(0.005, 0.04), others=busy)
    assert only.text.startswith("throttled: cpu worked 40.0 ms")
    assert only.text.endswith("other programs use 1.5 of 2 processors")
    assert len(said(CARD, CPU, **divided(0.011, 0.04), others=busy)) == 2


def test_time_that_no_device_works_is_said_of_all() -> None:
    (only,) = said(CARD, CPU, **divided(0.005, 0.02))
    assert "took 50.0 ms since it was loaded, 25.0 ms were predicted for gpu:0 and cpu" in only.text
    assert "which worked 25.0 ms on it: " in only.text
    assert said(CARD, CPU, **divided(0.005, 0.02, step_s=0.026)) == []


def test_other_programs_on_the_processors_are_the_reason_of_slow_steps() -> None:
    slow = {
        "prediction": Prediction((0.02,), ALONE),
        "report": report(10, 0.05),
        "asked": Load("", device="x"),
    }
    (only,) = [one for one in said(CPU, **slow, others=OthersUse(1.5, 2)) if one.state == "throttled"]
    assert only.text.endswith(": other programs use 1.5 of 2 processors")
    (only,) = [one for one in said(CPU, **slow, others=OthersUse(0.1, 2)) if one.state == "throttled"]
    assert "other programs use the device" in only.text


@pytest.mark.parametrize(
    "change",
    [
        {"report": report(LEAST_STEPS - 1, 0.011)},
        {"report": report(10, 0.0074)},  # within 1.5 times
        {"report": report(10, 0.011, kv_bytes=30_000_000)},  # 3 ms of them read a long context
        {"prediction": Prediction((0.0002,), ALONE), "report": report(10, 0.002)},  # what the host adds
        {"prediction": None},
        {"devices": structs.replace(DEVICES, kv_bytes_per_s={})},
        {"report": None},
    ],
)
def test_steps_as_predicted_are_not_throttled(change: dict[str, Any]) -> None:
    assert said(CARD, **{"prediction": ON_CARD, "report": report(10, 0.011)} | change) == []


ON_CPU = Prediction((0.02,), ALONE)


def test_a_model_on_the_cpu_although_a_card_would_be_faster() -> None:
    (only,) = said(CPU, prediction=ON_CPU)
    assert (only.level, only.state) == ("warn", "on the CPU")
    assert only.text == (
        "on the CPU (cpu): gpu:0 would be faster, but the whole model takes 300.0 MiB there,"
        " and it has 200.0 MiB"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prediction": Prediction((0.02,), {"cpu": ALONE["cpu"]})}, "gpu:0 cannot run all of this model"),
        (
            {"prediction": None, "devices": structs.replace(DEVICES, read_bytes_per_s={"cpu": 1e10})},
            "gpu:0 was not measured yet",
        ),
    ],
)
def test_other_reasons_why_a_card_is_not_used(change: dict[str, Any], reason: str) -> None:
    (only,) = said(CPU, **change)
    assert (only.level, only.text) == ("warn", f"on the CPU (cpu): {reason}")


@pytest.mark.parametrize(
    ("asked", "setting"),
    [
        (Load("", device="cpu"), "device"),
        (Load("", stages=(StageSpec("cpu", "embed", "head"),)), "split"),
        (Load("", gpu_layers=0), "gpu_layers"),
        (Load("", cpu_experts=99), "cpu_experts"),
    ],
)
def test_settings_that_keep_a_model_on_the_cpu_are_no_warning(asked: Load, setting: str) -> None:
    (only,) = said(CPU, prediction=ON_CPU, asked=asked)
    text = f"on the CPU (cpu) although gpu:0 is there, because the setting {setting} says so"
    assert (only.level, only.text) == ("info", text)


def test_a_list_of_devices_with_a_card_leaves_the_choice_open() -> None:
    (only,) = said(CPU, prediction=ON_CPU, asked=Load("", device="GPU-1, cpu"))
    assert only.level == "warn"


def test_a_model_whose_card_was_lost() -> None:
    (only,) = said(CPU, prediction=ON_CPU, lost=("gpu:0",))
    assert only.text == "on the CPU (cpu), because gpu:0 was lost or its memory was filled"
    assert only.fix.startswith("`llmd stop tiny && llmd load tiny` loads it again")


@pytest.mark.parametrize(
    "change",
    [
        {"devices": DeviceFacts(infos={"cpu": INFOS["cpu"]})},  # there is no card
        {"prediction": Prediction((0.001,), ALONE)},  # the processor is faster
        {"prediction": None},
    ],
)
def test_a_model_that_is_right_on_the_cpu(change: dict[str, Any]) -> None:
    assert said(CPU, **{"prediction": ON_CPU} | change) == []


@pytest.mark.parametrize(
    ("taken", "ending"),
    [
        (1165, "the load took 1.1 GiB of gpu:0, 1000.0 MiB were planned"),
        (835, "planned: the driver may have put the rest into main memory, which is slower"),
    ],
)
def test_a_load_that_took_other_memory_than_planned(taken: int, ending: str) -> None:
    memory = MemoryReport(("gpu:0",), 1000 * MIB, taken * MIB)
    (only,) = said(loaded=loaded_on(CARD, memories=(memory,)))
    assert (only.level, only.state) == ("warn", "memory")
    assert only.text.endswith(ending)


@pytest.mark.parametrize("taken", [836, 1000, 1164])  # drivers take some, and round
def test_a_load_that_took_about_what_was_planned(taken: int) -> None:
    memory = MemoryReport(("gpu:0",), 1000 * MIB, taken * MIB)
    assert said(loaded=loaded_on(CARD, memories=(memory,))) == []


def test_slower_kernels_than_usual_are_said_once_for_each_device() -> None:
    path = SlowPath("launches kernels one by one, because its memory had no room for graphs", "lower --slots")
    slow = structs.replace(report(1, 0.001), kernels=(KernelUse(slow=(path,)), KernelUse(slow=(path,))))
    (only,) = said(CARD, CARD, report=slow)
    assert (only.level, only.state, only.fix) == ("warn", "slow kernels", "lower --slots")
    assert only.text == f"slow kernels: gpu:0 {path.what}"
    quick = structs.replace(slow, kernels=(KernelUse(("graphs",)), KernelUse()))
    assert said(CARD, CARD, report=quick) == []


def test_memory_that_a_driver_keeps_in_main_memory() -> None:
    report = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, spilled_bytes={"card": 1200 * MIB, "other": 1})
    (only,) = said(CARD, report=report)
    assert (only.level, only.state) == ("warn", "spilled")
    assert only.text == (
        "spilled: the driver keeps 1.2 GiB of gpu:0 in main memory, which is slower,"
        " because the memory of the card is full"
    )
    assert said(CARD, report=Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0)) == []
