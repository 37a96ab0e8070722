"""Writes a random model of a shape as a Hugging Face directory in bf16."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.shapes import Shape


def write_checkpoint(shape: Shape, directory: Path) -> Path:
    """Write the directory, unless it is there already."""
    if (directory / "model.safetensors").exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(shape.config()))
    header, end = {}, 0
    for name, dims in shape.tensors().items():
        first, end = end, end + 2 * math.prod(dims)
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [first, end]}
    text = json.dumps(header).encode()
    part = directory / "model.safetensors.part"
    with part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for index, dims in enumerate(shape.tensors().values()):
            file.write(draw_bf16(index, dims).tobytes())
    part.rename(directory / "model.safetensors")
    return directory


def draw_bf16(seed: int, dims: tuple[int, ...]) -> NDArray[np.uint16]:
    """Normal weights as bf16 bits: spread 0.02 for matrices, ones for norms."""
    if len(dims) == 1:
        return np.full(dims, 0x3F80, np.uint16)
    values = np.random.default_rng(seed).standard_normal(dims, np.float32) * np.float32(0.02)
    return (values.view(np.uint32) >> 16).astype(np.uint16)
