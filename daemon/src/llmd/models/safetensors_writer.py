"""Make the header of a new safetensors file. `llmd.models.safetensors_header` describes the format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from llmd.models.new_weights import Layout, NewTensor
from llmd.models.safetensors_header import LENGTH_BYTES

ALIGNMENT = 8
WRITER = {"format": "pt"}
"""Transformers refuses a file without this entry."""


def safetensors_layout(tensors: Sequence[NewTensor]) -> Layout:
    """Return the layout of a file with these tensors, in this order."""
    ends = list(accumulate(tensor.num_bytes for tensor in tensors))
    begins = [0, *ends][:-1]
    entries: dict[str, Any] = {
        tensor.name: {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
        for tensor, begin, end in zip(tensors, begins, ends, strict=True)
    }
    text = json.dumps({"__metadata__": WRITER, **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    header = len(text).to_bytes(LENGTH_BYTES, "little") + text
    return Layout(header, tuple(len(header) + begin for begin in begins), len(header) + max(ends, default=0))
