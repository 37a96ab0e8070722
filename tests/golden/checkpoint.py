"""Writes a tiny model as a Hugging Face directory, and safetensors files in general."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors
from tests.golden.weights import E2M1_PAIRS, E8M0

TORCH_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
FILE_DTYPES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "F32",
    np.dtype(np.float16): "F16",
    np.dtype(np.uint16): "BF16",
    np.dtype(np.int32): "I32",
    np.dtype(np.int64): "I64",
    np.dtype(np.uint8): "U8",
    np.dtype(np.int8): "F8_E4M3",  # its bits
    E8M0: "F8_E8M0",
    E2M1_PAIRS: "I8",
}

Tensors = Mapping[str, NDArray[np.generic]]


def write_checkpoint(case: TinyModel, directory: Path) -> Path:
    """Write ``config.json`` and the weights of a case, in as many shards as it asks for."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {**case.config, "torch_dtype": TORCH_DTYPES[case.dtype]}
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    tensors = dict(draw_tensors(case))
    if case.num_shards == 1:
        write_safetensors(directory / "model.safetensors", tensors, {"format": "pt"})
    else:
        write_shards(directory, tensors, case.num_shards)
    return directory


def write_safetensors(path: Path, tensors: Tensors, metadata: Mapping[str, str]) -> None:
    """Write a safetensors file: header length (u64), JSON header padded to 8 bytes, data;
    all little-endian.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, array in tensors.items():
        first, end = end, end + array.nbytes
        header[name] = {
            "dtype": FILE_DTYPES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [first, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def read_safetensors(path: Path) -> tuple[dict[str, NDArray[np.generic]], dict[str, str]]:
    """Tensors and metadata of a file written by `write_safetensors`."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__")
    dtypes = {text: dtype for dtype, text in FILE_DTYPES.items()}
    tensors = {
        name: np.frombuffer(
            content, dtypes[entry["dtype"]], math.prod(entry["shape"]), start + entry["data_offsets"][0]
        ).reshape(entry["shape"])
        for name, entry in header.items()
    }
    return tensors, metadata


def write_shards(directory: Path, tensors: Tensors, num_shards: int, *, stem: str = "model") -> None:
    """Spread tensors over shards in turn, so that each layer lies in several files."""
    files = [f"{stem}-{i + 1:05}-of-{num_shards:05}.safetensors" for i in range(num_shards)]
    weight_map = {name: files[i % num_shards] for i, name in enumerate(tensors)}
    for file in files:
        shard = {name: array for name, array in tensors.items() if weight_map[name] == file}
        write_safetensors(directory / file, shard, {"format": "pt"})
    total = sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=2))
