"""What well-known models need of memory, as llmd itself computes it from the headers of their files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llmd.api import HOST_MEMORY
from llmd.api.messages import Load
from llmd.engine.placement.memory_need import MemoryNeed
from llmd.host.plugin_host import PluginHost
from tests.golden.models.llama import llama
from tests.golden.models.qwen import qwen3
from tests.golden.tensors import tensor_shapes
from tests.serving.memory_needs import memory_needs

CONTEXT_LEN = 4096
"""The window for which step buffers are computed: it does not change them."""


def _config(
    family: Any,
    hidden: int,
    intermediate: int,
    layers: int,
    heads: tuple[int, int],
    vocab: int,
    *,
    tied: bool,
) -> dict[str, Any]:
    config: dict[str, Any] = family(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads[0],
        num_key_value_heads=heads[1],
        head_dim=64 if hidden == 2048 else 128,
        max_position_embeddings=CONTEXT_LEN,
        tie_word_embeddings=tied,
    )
    return config


MODELS: dict[str, dict[str, Any]] = {
    "Llama 3.2 1B": _config(llama, 2048, 8192, 16, (32, 8), 128256, tied=True),
    "Qwen3 4B": _config(qwen3, 2560, 9728, 36, (32, 8), 151936, tied=True),
    "Llama 3.1 8B": _config(llama, 4096, 14336, 32, (32, 8), 128256, tied=False),
    "Qwen3 14B": _config(qwen3, 5120, 17408, 40, (40, 8), 151936, tied=False),
    "Qwen3 32B": _config(qwen3, 5120, 25600, 64, (64, 8), 151936, tied=False),
    "Llama 3.3 70B": _config(llama, 8192, 28672, 80, (64, 8), 128256, tied=False),
}


def write_headers(config: Mapping[str, Any], directory: Path) -> Path:
    """Write a model whose weights are a hole in the file: only its headers are read."""
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
    header: dict[str, Any] = {}
    end = 0
    for name, shape in tensor_shapes(config).items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with (directory / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return directory


def need_of(directory: Path, host: PluginHost, **options: Any) -> MemoryNeed:
    """Return what loading a model on the reference device would take of main memory."""
    load = Load(str(directory), device="reference", context_len=CONTEXT_LEN, **options)
    return memory_needs(load, host)[HOST_MEMORY]
