"""Rewrites an adapter as a GGUF file, with the keys, names and order of rows that llama.cpp gives it.

Source: ``convert_lora_to_gguf.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np

from tests.golden.adapters import AdapterCase
from tests.golden.gguf_layout import architecture_of, as_converted, change_keys, num_layers

TYPES = {
    "f32": gguf.GGMLQuantizationType.F32,
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
}


def write_gguf_adapter(
    case: AdapterCase,
    path: Path,
    changes: Mapping[str, Any] = MappingProxyType({}),
    *,
    drop: str = "",
    add: str = "",
) -> Path:
    """Write an adapter; returns the file.

    ``changes`` are other values of keys. The tensor ``drop`` is left out, and a tensor ``add`` is added.
    """
    config = case.base.config
    architecture = architecture_of(config)
    arch = next(number for number, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, num_layers(config))
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(case.fields["lora_alpha"]))
    change_keys(writer, changes)
    tensors = {add: np.zeros((2, 2), np.float32)} if add else {}
    for module in case.modules():
        stored = names.get_name(f"{module}.weight", try_suffixes=(".weight",))
        a, b = case.factors(module)
        tensors[f"{stored}.lora_a"] = a
        tensors[f"{stored}.lora_b"] = as_converted(f"{module}.weight", b, config)
    for name, tensor in tensors.items():
        if name != drop:
            kind = TYPES[case.dtype]
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
