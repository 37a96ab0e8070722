"""`llmd plan` says where a model runs fastest, without loading it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import DeviceProfile
from llmd.api.errors import PluginError
from llmd.cli.plan import lines_of
from llmd.engine.placement.alternatives import Alternative, Comparison, Measured, PlannedStage
from llmd.engine.placement.typical_request import Request
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
        PlannedStage(
            "gpu",
            "layers 0-5",
            ("embed", "0", "1", "2", "3", "4", "5"),
            3 << 30,
            {"attention": 2 << 30, "KV cache": 1 << 30},
        ),
        PlannedStage("cpu", "layers 6-7", ("6", "7", "head"), 1 << 30, {"KV cache": 1 << 30}),
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
    write_model(tmp_path / "data" / "llmd" / "models" / "tiny", context_len=1024)
    return names


def test_the_best_choice_of_devices_is_said_with_what_it_takes(llmd: Llmd, measured: list[str]) -> None:
    done = llmd("plan", "tiny")
    head, _, titles, *rows, _, kinds, sizes, _, advice = done.out.splitlines()
    assert head == "for a prompt of 512 tokens and an answer of 128 tokens, with nothing else running:"
    assert titles.split() == ["DEVICES", "FIRST", "TOKEN", "TOKENS/S", "REQUEST", "RESULT"]
    assert rows[0].startswith("cpu ")
    assert rows[0].endswith("best")
    assert rows[1].startswith("reference ")
    assert rows[1].endswith(" times as long")
    assert kinds.split()[:4] == ["DEVICE", "PARTS", "MEMORY", "EMBEDDING"]
    assert sizes.startswith("cpu     layers 0-1  ")
    assert advice == "the same as settings: --device cpu"
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


@pytest.mark.parametrize("kind", ["tiny", "vectors"])
def test_the_prediction_is_compared_with_a_measurement(llmd: Llmd, tmp_path: Path, kind: str) -> None:
    write_embedding_model(tmp_path / "data" / "llmd" / "models" / "vectors")
    plan = json.loads(llmd("plan", kind, "--verify", "--json").out)["plan"]
    assert plan["measured"]["request_s"] > 0
    assert (plan["measured"]["tokens_per_s"] is None) == (kind == "vectors")
    lines = llmd("plan", kind, "--verify").out.splitlines()
    (line,) = [line for line in lines if "measured on cpu: " in line]
    assert re.search(r"[\d.]+ times the prediction; rounds differ by \d+%$", line)


def test_a_device_that_cannot_be_measured_is_left_out(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(device: DeviceState, how: Measurement) -> DeviceProfile:
        if device.info.name == "cpu":
            raise PluginError("it is too hot")
        return RATES

    monkeypatch.setattr(benchmarks, "measure_now", measure)
    done = llmd("plan", "tiny")
    assert "cpu is left out: it is too hot" in done.err
    assert "the same as settings: --device reference" in done.out


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
    assert "gpu     layers 0-5  3.0 GiB  2.0 GiB    1.0 GiB" in text
    assert "cpu     layers 6-7  1.0 GiB             1.0 GiB" in text
    assert "with one step after the other, no choice is faster than 6.80 s for this request" in text
    assert "4.1 times as long" in text
    assert "needs 4.0 GiB of the 3.5 GiB that are free" in text
    assert text.endswith("the same as settings: --split embed-5=gpu,6-head=cpu")


def test_the_experts_that_a_token_reads_are_named() -> None:
    gpu, cpu = MIXED.stages
    mixture = structs.replace(MIXED, stages=(structs.replace(gpu, expert_bytes_per_token=3 << 20), cpu))
    assert "a token reads 3.0 MiB of the experts" in lines_of(Comparison(Request(), (mixture,), "gpu", 6.9))
    assert not any("experts" in line for line in lines_of(Comparison(Request(), (MIXED,), "gpu", 6.9)))


def test_what_was_measured_stands_below_the_predictions() -> None:
    real = Measured(0.6, 18.0, 7.6, 1.04)
    text = "\n".join(lines_of(Comparison(Request(), (MIXED, CPU), "gpu + cpu", 6.9, real)))
    assert (
        "0.60 s       18.0      7.60 s   measured on gpu + cpu: 1.10 times the prediction; rounds differ by 4%"
        in text
    )


def test_a_model_that_fits_nowhere_says_what_helps() -> None:
    lines = lines_of(Comparison(Request(), (GPU,), None, None))
    assert lines[-1] == "The model does not fit this machine: quantise it with --quant, or use a smaller one."
