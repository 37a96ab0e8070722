"""Leave out the scales by which other engines round activations, keys and values.

Checkpoints with quantised weights have them beside the weights of a module. llmd multiplies by activations
that are not rounded (or rounds them by scales of its own), and has its own formats for keys and values.

Sources: the loaders of vLLM (``model_executor/layers/quantization``), and the exporters of ModelOpt and
compressed-tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

NAMES = frozenset(
    {"activation_scale", "input_scale", "input_global_scale", "output_scale", "q_scale"}
    | {"k_scale", "v_scale", "kv_scale"}
)
"""The last parts of the names of such tensors."""

Info = TypeVar("Info")


def without_activation_scales(tensors: Mapping[str, Info]) -> dict[str, Info]:
    """Return the tensors that are not scales of activations, keys or values."""
    return {name: tensor for name, tensor in tensors.items() if name.rpartition(".")[2] not in NAMES}
