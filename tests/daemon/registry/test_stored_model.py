from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gguf
import msgspec
import numpy as np
import pytest

from llmd.registry.stored_model import describe
from tests.corrupt import small_model
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return small_model.write_small_model(tmp_path / "small")


def test_describes_a_model_from_its_headers(directory: Path) -> None:
    model = describe("small", directory)
    assert model.architecture == "LlamaForCausalLM"
    assert model.num_parameters == sum(array.size for array in small_model.tensors().values())
    assert model.size_bytes == 4 * model.num_parameters
    assert (model.format, model.file_format, model.bits_per_weight) == ("f32", "safetensors", 32)
    assert model.context_len == small_model.CONTEXT_LEN
    assert not model.reason


def test_describes_a_gguf_file_with_its_bits(tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    model = describe("m", path)
    assert (model.architecture, model.format, model.file_format) == ("LlamaForCausalLM", "q8_0", "gguf")
    assert 8.5 < model.bits_per_weight < 8.7  # matrices take 8.5 bits, norms 32
    assert model.context_len == 128
    assert describe("m", tmp_path / "absent.gguf").bits_per_weight == 0


def test_the_format_is_that_of_most_bytes(directory: Path) -> None:
    content = small_model.tensors()
    content["model.embed_tokens.weight"] = np.zeros((4000, 16), np.uint16)
    small_model.write_weights(directory, content)
    assert describe("small", directory).format == "bf16"


@pytest.mark.parametrize(
    ("changes", "context_len"),
    [
        ({"max_position_embeddings": 128}, 128),
        ({"max_position_embeddings": None, "text_config": {"max_position_embeddings": 256}}, 256),
        ({"max_position_embeddings": "many"}, None),
        ({"max_position_embeddings": None, "text_config": 3}, None),
    ],
)
def test_the_context_is_what_the_configuration_states(
    directory: Path, changes: dict[str, Any], context_len: int | None
) -> None:
    small_model.write_config(directory, **changes)
    assert describe("small", directory).context_len == context_len


def test_a_broken_model_keeps_what_is_known(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    model = describe("small", directory)
    assert model.architecture == "LlamaForCausalLM"
    assert model.num_parameters == 0
    assert "holds neither model.safetensors" in model.reason
    assert "copy the weights" in model.reason


def test_the_time_is_that_of_the_newest_file(directory: Path) -> None:
    for entry in (directory, *directory.iterdir()):
        os.utime(entry, (1_000_000_000, 1_000_000_000))
    os.utime(directory / "config.json", (1_500_000_000, 1_500_000_000))
    assert describe("small", directory).modified == datetime.fromtimestamp(1_500_000_000, UTC)


def test_a_dangling_link_is_no_obstacle(directory: Path) -> None:
    (directory / "README.md").symlink_to("nowhere")
    assert not describe("small", directory).reason


def test_a_model_without_tensors_is_described(directory: Path) -> None:
    small_model.write_raw(directory / "model.safetensors", {})
    model = describe("small", directory)
    assert (model.num_parameters, model.format) == (0, "")


def test_becomes_json(directory: Path) -> None:
    encoded = msgspec.json.encode(describe("small", directory), enc_hook=str)
    assert json.loads(encoded)["directory"] == str(directory)


def test_weights_that_were_replaced_are_described_anew(directory: Path) -> None:
    assert describe("small", directory).num_parameters == describe("small", directory).num_parameters
    content = small_model.tensors()
    content["lm_head.weight"] = np.zeros((1, 16), np.float32)
    small_model.write_weights(directory, content)
    expected = sum(array.size for array in content.values())
    assert describe("small", directory).num_parameters == expected
