"""The peer's file has the checkpoint's weights, with the peer's names and order of rows."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from bench.checkpoint import to_float32, write_checkpoint
from bench.gguf_file import gguf_name, interleaved, stored_tensors, write_gguf
from bench.shapes import Shape
from tests.bench.families import FAMILIES, LLAMA, QWEN3


@pytest.mark.parametrize("shape", FAMILIES, ids=lambda shape: shape.family)
def test_every_tensor_is_there_and_the_configuration(shape: Shape, tmp_path: Path) -> None:
    directory, path = write_checkpoint(shape, tmp_path / shape.name), tmp_path / "model.gguf"
    write_gguf(directory, path)
    reader = gguf.GGUFReader(path)
    stored = {tensor.name: tensor for tensor in reader.tensors}
    config = shape.config()
    for name, bits in stored_tensors(directory / "model.safetensors"):
        tensor = stored.pop(gguf_name(name))
        wanted = to_float32(bits if bits.ndim == 1 else interleaved(name, bits, config))
        found = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(found.reshape(wanted.shape), wanted), name
    assert not stored
    field = reader.get_field(f"{shape.family}.rope.dimension_count")
    assert field is not None
    assert field.contents() == int(shape.head_dim * shape.rotary)


def test_a_llama_head_has_its_halves_interleaved_and_others_do_not() -> None:
    shape = LLAMA
    rows = np.repeat(np.arange(32, dtype=np.uint16)[:, None], 4, axis=1)  # two heads of 16
    turned = interleaved("model.layers.0.self_attn.k_proj.weight", rows, shape.config())
    assert turned[:4, 0].tolist() == [0, 8, 1, 9]
    assert turned[16:18, 0].tolist() == [16, 24]
    assert interleaved("model.layers.0.self_attn.v_proj.weight", rows, shape.config()) is rows
    assert interleaved("model.layers.0.self_attn.k_proj.weight", rows, QWEN3.config()) is rows
