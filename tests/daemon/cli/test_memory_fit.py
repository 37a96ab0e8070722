"""What loading takes is said before anything is loaded, and is what the engine then takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType

from llmd.api.messages import Load
from llmd.embedded.opening import load_stored, user_directories
from llmd.engine.placement.expert_share import ENGINE_BYTES
from tests.golden.models.mixtures import qwen3_moe
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_embedding_model, write_model

Llmd = Callable[..., Any]


@pytest.fixture(autouse=True)
def shared_probes(llmd: Llmd, probes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are probed once for all tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(probes))


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMD_DEVICE", "reference")
    return write_model(tmp_path / "data" / "llmd" / "models" / "tiny")


def told(llmd: Llmd, *arguments: str) -> dict[str, str]:
    lines = [line.split("  ", 1) for line in llmd("show", *arguments).out.splitlines()]
    return {line[0]: line[-1].strip() for line in lines}


def test_the_estimate_is_what_the_engine_takes(
    llmd: Llmd, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMD_KV_MEMORY", "1MiB")
    monkeypatch.setenv("LLMD_SLOTS", "2")
    (fit,) = json.loads(llmd("show", "tiny", "--json").out)["memory"]
    load = Load(str(directory), device="reference", slots=2, kv_memory=1 << 20)
    model = load_stored(load, user_directories())
    (stage,) = model.loaded.stages
    model.close()
    assert (fit["weight_bytes"], fit["most_kv_bytes"]) == (stage.weight_bytes, stage.kv_bytes)
    assert fit["step_bytes"] == stage.step_bytes
    assert (fit["devices"], fit["slots"], fit["fits"]) == (["reference"], 2, True)


def test_settings_of_the_model_change_what_it_needs(llmd: Llmd, directory: Path, tmp_path: Path) -> None:
    def most_kv_bytes() -> int:
        (fit,) = json.loads(llmd("show", "tiny", "--json").out)["memory"]
        return int(fit["most_kv_bytes"])

    before = most_kv_bytes()
    assert llmd("config", "set", "kv_dtype", "f32", "--model", "tiny").code == 0
    assert most_kv_bytes() == 2 * before
    assert llmd("config", "set", "max_ctx", "256", "--model", "tiny").code == 0
    assert most_kv_bytes() == before


def test_a_format_for_all_models_is_ignored_as_in_the_daemon(
    llmd: Llmd, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf_model(directory.parent / "blocks" / "m.gguf", kind=GGMLQuantizationType.Q8_0)
    before = told(llmd, "blocks")["to load it"]
    monkeypatch.setenv("LLMD_QUANT", "q4")
    assert told(llmd, "blocks")["to load it"] == before
    monkeypatch.delenv("LLMD_QUANT")
    assert llmd("config", "set", "quant", "q4", "--model", "blocks").code == 0
    assert "stored quantised already" in told(llmd, "blocks")["to load it"]


def test_whether_it_fits_is_said_with_the_numbers(
    llmd: Llmd, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(llmd, "tiny")["fits here"].startswith("yes: at most ")
    assert (
        "of KV cache (most: 8 sequences at the full context) on reference" in told(llmd, "tiny")["to load it"]
    )
    (fit,) = json.loads(llmd("show", "tiny", "--json").out)["memory"]
    least = fit["weight_bytes"] + fit["step_bytes"] + fit["least_kv_bytes"]
    monkeypatch.setenv("LLMD_MAX_MEMORY", str(least))
    assert told(llmd, "tiny")["fits here"].startswith("yes, with a smaller KV cache: ")
    monkeypatch.setenv("LLMD_MAX_MEMORY", str(least - 1))
    assert told(llmd, "tiny")["fits here"].startswith("no: at least ")
    monkeypatch.setenv("LLMD_DEVICE", "absent")
    assert "absent" in told(llmd, "tiny")["to load it"]
    assert json.loads(llmd("show", "tiny", "--json").out)["memory"] == []


def test_experts_without_room_are_named(llmd: Llmd, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = partial(qwen3_moe, hidden_size=256, moe_intermediate_size=384, num_experts=32)
    write_model(directory.parent / "mixture", family=family)
    monkeypatch.setenv("LLMD_DEVICE", "cpu")
    monkeypatch.setenv("LLMD_KV_MEMORY", "1MiB")
    (whole,) = json.loads(llmd("show", "mixture", "--json").out)["memory"]
    assert whole["absent_bytes"] == 0
    less, matrix_bytes = 1 << 18, 4 * 256 * 384
    limit = whole["weight_bytes"] + whole["step_bytes"] + whole["least_kv_bytes"] - less
    monkeypatch.setenv("LLMD_MAX_MEMORY", str(limit))
    (fit,) = json.loads(llmd("show", "mixture", "--json").out)["memory"]
    assert fit["absent_bytes"] == pytest.approx(less + ENGINE_BYTES + matrix_bytes, abs=2)
    assert fit["absent_bytes"] == whole["weight_bytes"] - fit["weight_bytes"]
    expected = "yes, without 64.6 MiB of experts, which are read when a text needs them, "
    assert told(llmd, "mixture")["fits here"].startswith(expected)


def test_an_embedding_model_needs_no_cache_for_sequences(llmd: Llmd, directory: Path, tmp_path: Path) -> None:
    embedder = write_embedding_model(tmp_path / "embedder")
    assert told(llmd, str(embedder))["fits here"].startswith("yes: ")
