"""A file with the same weights has no error, one with others has; the bytes are those that a token reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.checkpoint import write_checkpoint
from bench.gguf_quality import interleaved, quality
from bench.peer import write_plain
from bench.shapes import Shape
from tests.bench.families import DENSE, LLAMA, PHI3, QWEN3, QWEN3_MOE

UNTIED = PHI3


@pytest.mark.parametrize("shape", DENSE, ids=lambda shape: shape.family)
def test_weights_themselves_have_no_error(shape: Shape, tmp_path: Path) -> None:
    directory = write_checkpoint(shape, tmp_path / "model")
    found = quality(directory, write_plain(directory, tmp_path / "model.gguf"))
    assert (found["nmse"], found["expert_bytes"]) == (0, 0)
    assert found["types"] == {"BF16": found["read_bytes"]}
    assert found["read_bytes"] == 2 * (shape.products + shape.head_products)
    assert found["bits_per_weight"] == 16


def test_other_weights_have_an_error(tmp_path: Path) -> None:
    directory = write_checkpoint(UNTIED, tmp_path / "model")
    path = write_plain(directory, tmp_path / "model.gguf")
    weights = directory / "model.safetensors"
    head = 2 * UNTIED.head_products
    weights.write_bytes(weights.read_bytes()[:-head] + bytes(head))
    everything = 2 * (UNTIED.products + 2 * UNTIED.head_products)
    assert 0.5 < quality(directory, path)["nmse"] * everything / head < 2


def test_experts_are_counted_apart_and_not_compared(tmp_path: Path) -> None:
    directory = write_checkpoint(QWEN3_MOE, tmp_path / "model")
    found = quality(directory, write_plain(directory, tmp_path / "model.gguf"))
    mixture = QWEN3_MOE.mixture
    assert mixture is not None
    assert (
        found["expert_bytes"] == 2 * QWEN3_MOE.layers * mixture.experts * 3 * mixture.ffn * QWEN3_MOE.hidden
    )
    assert found["nmse"] is None


def test_a_llama_head_has_its_halves_interleaved_and_others_do_not() -> None:
    shape = LLAMA
    rows = np.repeat(np.arange(32, dtype=np.uint16)[:, None], 4, axis=1)  # two heads of 16
    turned = interleaved("model.layers.0.self_attn.k_proj.weight", rows, shape.config())
    assert turned[:4, 0].tolist() == [0, 8, 1, 9]
    assert turned[16:18, 0].tolist() == [16, 24]
    assert interleaved("model.layers.0.self_attn.v_proj.weight", rows, shape.config()) is rows
    assert interleaved("model.layers.0.self_attn.k_proj.weight", rows, QWEN3.config()) is rows
