from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.api.messages import Load, StageSpec
from llmd.config import EngineConfig
from llmd.config.sources import load_settings
from llmd.server.models.load_message import load_message, load_message_of, parse_budgets, parse_split


def test_every_engine_setting_reaches_the_engine() -> None:
    config = EngineConfig(
        device="cpu",
        split="0-3=cpu,4=reference",
        max_ctx=99,
        slots=3,
        prefill_chunk=7,
        quant="q8",
        activations="f32",
        kv_dtype="f32",
        kv_memory=5,
        kv_spool=6,
        threads=2,
        weight_cache=7,
    )
    assert load_message(Path("/m"), config) == Load(
        directory="/m",
        device="cpu",
        stages=(StageSpec("cpu", "0", "3"), StageSpec("reference", "4", "4")),
        context_len=99,
        slots=3,
        chunk_len=7,
        quant="q8",
        activations="f32",
        kv_dtype="f32",
        kv_memory=5,
        kv_spool=6,
        threads=2,
        weight_cache=7,
    )


def test_weights_stay_as_stored_if_the_setting_says_so() -> None:
    assert load_message(Path("/m"), EngineConfig(quant="none")).quant is None
    assert load_message(Path("/m"), EngineConfig(quant="q8"), quant_is_default=True).quant_is_default


def test_device_names_may_hold_colons_and_spaces_may_stand_after_commas() -> None:
    stages = (StageSpec("cuda:0", "0", "1"), StageSpec("cuda:1", "2", "3"))
    assert parse_split("0-1=cuda:0, 2-3=cuda:1") == stages


def test_the_ends_of_the_model_and_the_halves_of_a_layer_have_names() -> None:
    stages = (
        StageSpec("a", "embed", "3.mixer"),
        StageSpec("b", "3.ffn", "3.ffn"),
        StageSpec("a", "4", "head"),
    )
    assert parse_split("embed-3.mixer=a,3.ffn=b,4-head=a") == stages


def test_layers_on_graphics_cards_exclude_a_split() -> None:
    assert load_message(Path("/m"), EngineConfig(gpu_layers=0)).gpu_layers == 0
    with pytest.raises(ConfigError, match="--split and --gpu-layers are both set"):
        load_message(Path("/m"), EngineConfig(gpu_layers=3, split="0-3=cpu"))
    assert load_message(Path("/m"), EngineConfig(cpu_experts=0)).cpu_experts == 0
    with pytest.raises(ConfigError, match="--gpu-layers and --cpu-experts are both set"):
        load_message(Path("/m"), EngineConfig(gpu_layers=3, cpu_experts=4))


def test_budgets_of_devices_limit_their_memory(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nmemory_budget = 'cuda:0=2GiB, cuda:1=1.5KiB'\n")
    load = load_message_of("m", Path("/m"), load_settings(file=tmp_path / "config.toml"))
    assert load.options_of("cuda:0").memory_bytes == 2 << 30
    assert load.options_of("cuda:1").memory_bytes == 1536
    assert load.options_of("cpu").memory_bytes is None


@pytest.mark.parametrize("text", ["cuda:0", "cuda:0=", "=2GiB", "cuda:0=two", "cuda:0=2GiB,", "cuda:0=2XB"])
def test_malformed_budget_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="--memory-budget") as caught:
        parse_budgets(text)
    assert "cuda:0=20GiB" in caught.value.hint


def test_weights_of_a_stage_may_stay_in_main_memory() -> None:
    stages = (StageSpec("cuda:0", "embed", "1"), StageSpec("cuda:0", "2", "3", streamed=True))
    assert parse_split("embed-1=cuda:0,2-3=cuda:0/stream") == stages


@pytest.mark.parametrize(
    "text", ["cpu", "0-3", "a-b=cpu", "0-3=", "0-3=cpu,", "-1=cpu", "3.norm=cpu", "embed.ffn=cpu"]
)
def test_malformed_split_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="--split") as caught:
        parse_split(text)
    assert "0-3=cpu,4-7=reference" in caught.value.hint
