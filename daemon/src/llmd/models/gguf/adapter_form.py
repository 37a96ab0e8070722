"""How GGUF files name and order the matrices that adapters change.

Source: ``convert_hf_to_gguf.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import UnsupportedModelError
from llmd.models.adapters.adapter import RowOrder
from llmd.models.gguf.tensor_names import stored_name

IN_LAYER = re.compile(r"(?:^|\.)(layers\.\d+\.(?P<module>.*))$")
_FEED_FORWARD = ("gate", "up", "down")
KEPT = frozenset(
    f"{module}.{name}_proj"
    for module, names in {
        "self_attn": ("q", "k", "v", "o", "qkv"),
        "mlp": (*_FEED_FORWARD, "gate_up"),
        "mlp.shared_expert": _FEED_FORWARD,
        "mlp.shared_experts": _FEED_FORWARD,
        "block_sparse_moe.shared_experts": _FEED_FORWARD,
        "mixer": ("q", "k", "v", "o", "up", "down"),
        "mixer.shared_experts": ("up", "down"),
    }.items()
    for name in names
)
"""Modules whose matrices the converter leaves as they are, but for the order of rows of some."""
PERMUTED: Mapping[str, str] = {
    "self_attn.q_proj": "num_attention_heads",
    "self_attn.k_proj": "num_key_value_heads",
}
"""Modules whose rows have another order in `ROTATES_NEIGHBOURS`, and the fields with their heads."""
ROTATES_NEIGHBOURS = ("llama", "granite", "granitemoe", "granitehybrid")
"""Architectures whose files have the two rows that RoPE rotates side by side; transformers has them half a
head apart."""
SCALED = ("falcon-h1",)
"""Architectures whose files have weights that are multiplied by numbers of the configuration."""


class GgufForm(msgspec.Struct, frozen=True):
    """See `llmd.models.adapters.adapter.AdapterForm`."""

    architecture: str
    config: Mapping[str, Any]
    """With the field names of transformers."""

    def module(self, module: str) -> str:
        if self.architecture in SCALED:
            raise _refused(
                f"{module}: llama.cpp's converter multiplies weights of {self.architecture} by numbers of the "
                "configuration; llmd applies no adapter to such GGUF files"
            )
        found = IN_LAYER.search(module)
        if found is None or found["module"] not in KEPT:
            raise _refused(
                f"{module}: llama.cpp's converter may have changed its matrix; to GGUF files of "
                f"{self.architecture}, llmd applies adapters of attention's and feed-forward projections only"
            )
        return stored_name(f"model.{found[1]}.weight", self.architecture).removesuffix(".weight")

    def row_order(self, module: str) -> RowOrder | None:
        found = IN_LAYER.search(module)
        field = PERMUTED.get(found["module"]) if found else None
        if field is None or self.architecture not in ROTATES_NEIGHBOURS:
            return None
        heads = int(self.config[field])
        return lambda rows: neighbours(rows, heads)


def _refused(reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        reason, hint="serve the model from the directory with config.json and safetensors files"
    )


def neighbours(rows: NDArray[np.generic], heads: int) -> NDArray[np.generic]:
    """Return rows ``[heads * head_dim, n]`` with row i and row i + head_dim / 2 of each head side by side."""
    halves = rows.reshape(heads, 2, -1, rows.shape[-1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)
