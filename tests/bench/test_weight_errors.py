"""Errors are measured for the codes that each side computes with, for trained weights first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import checkpoint, weight_errors
from bench.checkpoint import GAUSSIAN, STUDENT_T5, TIMED, write_checkpoint
from bench.gguf_quality import quality
from bench.peer import write_plain
from bench.weight_errors import TRAINED, WeightErrors, error_table, measure_errors
from tests.bench.families import LLAMA


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], list[WeightErrors]]:
    """Write the peer's file in bf16, which needs no quantiser, and read it with the peer's reader."""

    def make_gguf(directory: Path, _kind: str, file: Path) -> Path:
        return write_plain(directory, file)

    def run_peer(_module: str, directory: str, file: str) -> str:
        return json.dumps(quality(Path(directory), Path(file)))

    for module in (checkpoint, weight_errors):
        monkeypatch.setattr(module, "MODELS", tmp_path)
    monkeypatch.setattr(weight_errors, "make_gguf", make_gguf)
    monkeypatch.setattr(weight_errors, "run_peer", run_peer)
    timed = write_checkpoint(LLAMA, tmp_path / "timed")
    return lambda quant: measure_errors(quant, "BF16", timed)


@pytest.mark.exhaustive
def test_trained_weights_come_first_and_those_that_are_timed_last(
    measured: Callable[[str], list[WeightErrors]],
) -> None:
    found = measured("q4")
    assert [one.weights for one in found] == [TRAINED, GAUSSIAN.title, STUDENT_T5.title, TIMED.title]
    assert all(one.errors["llama.cpp"] == 0 and one.bits["llama.cpp"] == 16 for one in found)
    gauss, heavy = found[1].errors["llmd"], found[2].errors["llmd"]
    assert 0.004 < gauss < heavy  # docs/formats.md: 0.0051 for Gaussian weights
    assert gauss < 0.006
    assert found[1].bits["llmd"] == pytest.approx(4.4375, abs=0.01)


@pytest.mark.exhaustive
def test_unquantised_weights_have_no_error(measured: Callable[[str], list[WeightErrors]]) -> None:
    assert [one.errors["llmd"] for one in measured("bf16")] == [0, 0, 0, 0]


def test_no_ratio_is_shown_where_the_peer_loses_nothing() -> None:
    found = WeightErrors("trained", {"llmd": 0.0, "llama.cpp": 0.0}, {"llmd": 16, "llama.cpp": 16})
    *_, line = error_table("bf16", "BF16", [found])
    assert line == "| trained | 0.00e+00 | 16.00 | 0.00e+00 | 16.00 | – |"
