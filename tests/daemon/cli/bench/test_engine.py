from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from llmd.cli.bench.engine import command
from tests.daemon.benchmark.traces import check_trace
from tests.serving.model import write_embedding_model, write_model

Llmd = Callable[..., Any]


@pytest.fixture
def measure(llmd: Llmd, probes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Llmd:
    """Measure the small model for some steps; devices are probed once for all tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(probes))
    directory = write_model(tmp_path / "model")

    def run(*arguments: str) -> Any:
        return llmd(
            "bench", "engine", "--model", str(directory), "--streams", "2", "--steps", "5", *arguments
        )

    return run


def test_a_row_for_each_load() -> None:
    arguments = ["--streams", "1", "--streams", "3", "--step-ms", "0.5", "--steps", "4", "--json"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    loads = json.loads(result.output)["loads"]
    assert [load["streams"] for load in loads] == [1, 3]
    assert all(load["step_s"] == 0.0005 and load["loop_s"] > 0 for load in loads)


def test_people_read_shares_and_milliseconds() -> None:
    result = CliRunner().invoke(command, ["--streams", "2", "--steps", "3", "--temperature", "0.8"])
    title, row = result.output.splitlines()
    assert title.split() == ["STREAMS", "STEP", "IDLE", "LOOP", "TOKENS/S"]
    assert row.split()[:3] == ["2", "10", "ms"]


def test_no_streams_are_refused() -> None:
    result = CliRunner().invoke(command, ["--streams", "0"])
    assert result.exit_code == 2
    assert "0 is not in the range" in result.output


def test_the_steps_of_every_load_are_traced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    arguments = ["--streams", "1", "--streams", "3", "--step-ms", "0.5", "--steps", "4", "--trace", str(path)]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    trace = json.loads(path.read_text())
    names = check_trace(trace)
    assert {"engine / loop", "stage null device / launch", "stage null device / device"} <= set(
        names.values()
    )
    steps = [event["args"] for event in trace["traceEvents"] if event.get("cat") == "step"]
    assert [one["sequences"] for one in steps] == [1] * 4 + [3] * 4
    device = [event for event in trace["traceEvents"] if event.get("cat") == "device"]
    assert [event["dur"] for event in device] == pytest.approx([500.0] * 8)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_model_is_measured_and_traced_on_its_device(measure: Llmd, tmp_path: Path, device: str) -> None:
    path = tmp_path / "trace.json"
    done = measure("--device", device, "--trace", str(path), "--json")
    assert done.code == 0, done.err
    (load,) = json.loads(done.out)["loads"]
    assert load["streams"] == 2
    assert load["step_s"] > 0
    assert 0 < load["idle_share"] < 1
    assert load["tokens_per_s"] == pytest.approx(2 / load["step_s"])
    trace = json.loads(path.read_text())
    assert f"stage {device}: layers 0-1 / device" in check_trace(trace).values()
    assert sum(event.get("cat") == "step" for event in trace["traceEvents"]) == 5


def test_each_stage_of_a_divided_model_has_its_tracks(measure: Llmd, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    done = measure("--split", "0=cpu,1=reference", "--trace", str(path))
    assert done.code == 0, done.err
    names = set(check_trace(json.loads(path.read_text())).values())
    assert {"stage cpu: layer 0 / device", "stage reference: layer 1 / device"} <= names


def test_what_needs_a_model_is_refused_without_one() -> None:
    for option in ("--device", "--split", "--quant"):
        result = CliRunner().invoke(command, [option, "cpu"])
        assert result.exit_code == 2
        assert "need --model" in result.output


def test_a_model_that_cannot_generate_is_refused(measure: Llmd, llmd: Llmd, tmp_path: Path) -> None:
    directory = write_embedding_model(tmp_path / "embedder")
    done = llmd("bench", "engine", "--model", str(directory), "--steps", "2")
    assert done.code != 0
    assert "cannot generate" in done.err


def test_more_steps_than_the_context_has_room_for_are_refused(measure: Llmd) -> None:
    done = measure("--steps", "100000")
    assert done.code != 0
    assert "100000" in done.err or "context" in done.err
