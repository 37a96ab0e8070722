"""`llmd plan` says where a model runs fastest, without loading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.api.errors import PluginError
from llmd.cli.plan import lines_of
from llmd.engine.placement.alternatives import Alternative, Comparison, PlannedStage
from llmd.engine.placement.model_problem import Request
from llmd.host import benchmarks
from llmd.host.benchmarks import Benchmarks, Measurement
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from tests.serving.model import write_embedding_model, write_model

Llmd = Callable[..., Any]
RATES = DeviceProfile(
    read_bytes_per_s=2e10,
    decode_bytes_per_s={"f16": 1e10, "q8": 1e10},
    prefill_flops_per_s={"f16": {16: 1e11}, "q8": {16: 1e11}},
    kv_bytes_per_s=1e10,
    attention_flops_per_s=1e11,
    step_s=1e-4,
    part_s=1e-5,
    copy_bytes_per_s=1e9,
)
MIXED = Alternative(
    "gpu + cpu",
    (
        PlannedStage("gpu", "layers 0-5", ("embed", "0", "1", "2", "3", "4", "5"), 3 << 30),
        PlannedStage("cpu", "layers 6-7", ("6", "7", "head"), 1 << 30),
    ),
    0.5,
    20.0,
    6.9,
)
CPU = Alternative("cpu", (PlannedStage("cpu", "layers 0-7", ("0", "7"), 4 << 30),), 3.0, 5.0, 28.6)
GPU = Alternative("gpu", (), None, None, None, "needs 4.0 GiB of the 3.5 GiB that are free")


@pytest.fixture(autouse=True)
def measured(llmd: Llmd, probes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of measured devices. Devices are probed once for all tests; the reference is slow."""
    names: list[str] = []

    def measure(device: DeviceState, how: Measurement) -> DeviceProfile:
        names.append(device.info.name)
        return RATES if device.info.name != "reference" else structs.replace(RATES, step_s=1e-2)

    monkeypatch.setattr(benchmarks, "measure_now", measure)
    monkeypatch.setenv("XDG_CACHE_HOME", str(probes))
    monkeypatch.setattr("llmd.cli.plan.build_benchmarks", lambda _cache: Benchmarks(Cache(tmp_path)))
    write_model(tmp_path / "data" / "llmd" / "models" / "tiny")
    return names


def test_the_best_choice_of_devices_is_said_with_what_it_takes(llmd: Llmd, measured: list[str]) -> None:
    done = llmd("plan", "tiny")
    head, _, titles, *rows, _, advice = done.out.splitlines()
    assert head == "for a prompt of 512 tokens and an answer of 128 tokens, with nothing else running:"
    assert titles.split() == ["DEVICES", "FIRST", "TOKEN", "TOKENS/S", "REQUEST", "RESULT"]
    assert rows[0].startswith("cpu ")
    assert rows[0].endswith("best")
    assert rows[1].startswith("reference ")
    assert rows[1].endswith(" times as long")
    assert advice == "load it so: --device cpu"
    assert set(measured) == {"cpu", "reference"}
    assert "measuring cpu …" in done.err


def test_the_same_for_programs(llmd: Llmd) -> None:
    plan = json.loads(llmd("plan", "tiny", "--json").out)["plan"]
    assert plan["best"] == "cpu"
    assert plan["request"] == {"prompt_len": 512, "answer_len": 128}
    best, slow = plan["alternatives"]
    assert best["request_s"] == pytest.approx(plan["least_s"])
    assert slow["request_s"] > best["request_s"]
    assert best["stages"][0]["part_names"][0] == "embed"


def test_a_model_that_embeds_gives_no_answer(llmd: Llmd, tmp_path: Path) -> None:
    write_embedding_model(tmp_path / "data" / "llmd" / "models" / "vectors")
    lines = llmd("plan", "vectors").out.splitlines()
    assert lines[0] == "for a prompt of 512 tokens, with nothing else running:"
    assert lines[3].split()[-1] == "best"


def test_a_device_that_cannot_be_measured_is_left_out(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(device: DeviceState, how: Measurement) -> DeviceProfile:
        if device.info.name == "cpu":
            raise PluginError("it is too hot")
        return RATES

    monkeypatch.setattr(benchmarks, "measure_now", measure)
    done = llmd("plan", "tiny")
    assert "cpu is left out: it is too hot" in done.err
    assert "load it so: --device reference" in done.out


def test_without_devices_there_is_no_plan(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(device: DeviceState, how: Measurement) -> DeviceProfile:
        raise PluginError("it is too hot")

    monkeypatch.setattr(benchmarks, "measure_now", measure)
    done = llmd("plan", "tiny")
    assert done.code != 0
    assert "no device can be used" in done.err


def test_a_split_is_ready_to_be_typed() -> None:
    found = Comparison(Request(), (MIXED, CPU, GPU), "gpu + cpu", 6.8)
    text = "\n".join(lines_of(found))
    assert "gpu  layers 0-5  3.0 GiB" in text
    assert "4.1 times as long" in text
    assert "needs 4.0 GiB of the 3.5 GiB that are free" in text
    assert text.endswith("load it so: --split embed-5=gpu,6-head=cpu")


def test_a_model_that_fits_nowhere_says_what_helps() -> None:
    lines = lines_of(Comparison(Request(), (GPU,), None, None))
    assert lines[-1] == "The model does not fit this machine: quantise it with --quant, or use a smaller one."
