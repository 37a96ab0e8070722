"""Compares a GGUF file's weights with its checkpoint's: ``python -m bench.gguf_quality DIRECTORY PATH``.

Runs in the peer's environment and prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from bench.checkpoint import to_float32
from bench.gguf_file import gguf_name, interleaved, stored_tensors

ROWS = 256
"""Rows of each matrix to compare: whole heads, so that the order of rows within heads does not matter."""
EMBEDDING = "token_embd.weight"
HEAD = "output.weight"


def main() -> None:
    print(json.dumps(quality(Path(sys.argv[1]), Path(sys.argv[2]))))


def quality(directory: Path, path: Path) -> dict[str, Any]:
    """Return ``nmse`` of the matrices, and of those that a token reads ``read_bytes``, ``types``,
    ``bits_per_weight``.
    """
    config = json.loads((directory / "config.json").read_text())
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    squares = {"error": 0.0, "weight": 0.0}
    for name, bits in stored_tensors(directory / "model.safetensors"):
        if bits.ndim == 1:
            continue
        stored = tensors[gguf_name(name)]
        found = gguf.quants.dequantize(stored.data[:ROWS], stored.tensor_type)
        wanted = to_float32(interleaved(name, bits, config)[:ROWS]).astype(np.float64)
        squares["error"] += float(((found - wanted) ** 2).sum())
        squares["weight"] += float((wanted**2).sum())
    read = [
        one
        for one in tensors.values()
        if len(one.shape) > 1 and (one.name != EMBEDDING or HEAD not in tensors)
    ]
    types: dict[str, int] = {}
    for one in read:
        types[one.tensor_type.name] = types.get(one.tensor_type.name, 0) + int(one.n_bytes)
    nmse = squares["error"] / squares["weight"]
    read_bytes = sum(types.values())
    num_weights = sum(int(one.n_elements) for one in read)
    return {
        "nmse": nmse,
        "read_bytes": read_bytes,
        "types": types,
        "bits_per_weight": 8 * read_bytes / num_weights,
    }


if __name__ == "__main__":
    main()
