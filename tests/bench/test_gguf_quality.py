"""A file with the same weights has no error, one with others has; the bytes are those that a token reads."""

from __future__ import annotations

from pathlib import Path

from bench.checkpoint import write_checkpoint
from bench.gguf_file import write_gguf
from bench.gguf_quality import quality
from tests.bench.families import PHI3

UNTIED = PHI3


def test_weights_themselves_have_no_error(tmp_path: Path) -> None:
    directory, path = write_checkpoint(UNTIED, tmp_path / "model"), tmp_path / "model.gguf"
    write_gguf(directory, path)
    found = quality(directory, path)
    assert found["nmse"] == 0
    assert found["types"] == {"BF16": found["read_bytes"]}
    assert found["read_bytes"] == 2 * (UNTIED.products + UNTIED.head_products)
    assert found["bits_per_weight"] == 16


def test_other_weights_have_an_error(tmp_path: Path) -> None:
    directory, path = write_checkpoint(UNTIED, tmp_path / "model"), tmp_path / "model.gguf"
    write_gguf(directory, path)
    weights = directory / "model.safetensors"
    head = 2 * UNTIED.head_products
    weights.write_bytes(weights.read_bytes()[:-head] + bytes(head))
    everything = 2 * (UNTIED.products + 2 * UNTIED.head_products)
    assert 0.5 < quality(directory, path)["nmse"] * everything / head < 2
