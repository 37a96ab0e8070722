"""LoRA adapters of tiny models, as PEFT writes them; what the models answer with them is committed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import write_safetensors
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import tensor_shapes
from tests.golden.weights import draw, to_bf16

PREFIX = "base_model.model."
GAIN = 0.6
"""Output over input deviation of what an adapter adds, before its scale."""


@dataclass(frozen=True)
class AdapterCase:
    """An adapter of a tiny model.

    ``ranks`` has the last names of its modules with their ranks; ``only_layers`` are those that it changes.
    ``fields`` are added to ``adapter_config.json``.
    """

    name: str
    model: str
    ranks: Mapping[str, int]
    seed: int = 1
    dtype: Literal["f32", "f16", "bf16"] = "f32"
    fields: Mapping[str, Any] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    """Scale of the modules with these last names, worked out by hand from ``fields``."""
    only_layers: tuple[int, ...] | None = None

    @property
    def base(self) -> TinyModel:
        return tiny_model(self.model)

    def modules(self) -> dict[str, tuple[int, ...]]:
        """The modules that it changes, with the shapes of their weights."""
        return {
            module: shape
            for name, shape in tensor_shapes(self.base.config).items()
            if (module := name.removesuffix(".weight")).rpartition(".")[2] in self.ranks
            and (self.only_layers is None or int(module.split(".")[2]) in self.only_layers)
        }

    def factors(self, module: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Both matrices of a module, ``[rank, in]`` and ``[out, rank]``, as numbers that ``dtype`` has."""
        rank, (outputs, inputs) = self.ranks[module.rpartition(".")[2]], self.modules()[module]
        shapes = {"lora_A": (rank, inputs), "lora_B": (outputs, rank)}
        spreads = {"lora_A": inputs**-0.5, "lora_B": GAIN * rank**-0.5}
        a, b = (
            draw(self.seed, f"{self.name}:{module}.{name}", shape, 0.0, spreads[name])
            for name, shape in shapes.items()
        )
        return self._rounded(a), self._rounded(b)

    def _rounded(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.dtype == "bf16":
            return (to_bf16(values).astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float16).astype(np.float32) if self.dtype == "f16" else values

    def scale(self, module: str) -> float:
        return self.scales[module.rpartition(".")[2]]

    def write(self, directory: Path) -> Path:
        """Write the adapter as PEFT does; returns its directory."""
        directory.mkdir(parents=True)
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": self.model,
            "bias": "none",
            "target_modules": list(self.ranks),
            "modules_to_save": None,
            "fan_in_fan_out": False,
            "use_dora": False,
            "init_lora_weights": True,
            "layers_to_transform": None if self.only_layers is None else list(self.only_layers),
            **self.fields,
        }
        (directory / "adapter_config.json").write_text(json.dumps(config, indent=2))
        tensors = {}
        for module in self.modules():
            for name, values in zip(("lora_A", "lora_B"), self.factors(module), strict=True):
                tensors[f"{PREFIX}{module}.{name}.weight"] = self._stored(values)
        write_safetensors(directory / "adapter_model.safetensors", tensors, {"format": "pt"})
        return directory

    def _stored(self, values: NDArray[np.float32]) -> NDArray[np.generic]:
        if self.dtype == "bf16":
            return to_bf16(values)
        return values.astype(np.float16) if self.dtype == "f16" else values


def _alike(modules: str, value: float) -> dict[str, Any]:
    return dict.fromkeys(modules.split(), value)


_ATTENTION = "q_proj k_proj v_proj o_proj"
_ALL = f"{_ATTENTION} gate_proj up_proj down_proj"

ADAPTERS = (
    AdapterCase(
        "adapter-llama",
        "llama3-gqa-tied",
        _alike(_ALL, 4),
        fields={"r": 4, "lora_alpha": 8},
        scales=_alike(_ALL, 2.0),
    ),
    AdapterCase(
        "adapter-llama-rslora",
        "llama2-mha",
        {"q_proj": 9, "o_proj": 4, "down_proj": 4},
        seed=5,
        dtype="f16",
        fields={
            "r": 4,
            "lora_alpha": 3,
            "use_rslora": True,
            "rank_pattern": {"q_proj": 9},
            "alpha_pattern": {r"layers\.\d+\.mlp\.down_proj": 1},
        },
        scales={"q_proj": 1.0, "o_proj": 1.5, "down_proj": 0.5},
    ),
    AdapterCase(
        "adapter-phi3-fused",
        "phi3-window",
        _alike("qkv_proj o_proj gate_up_proj", 5),
        dtype="bf16",
        fields={"r": 5, "lora_alpha": 5},
        scales=_alike("qkv_proj o_proj gate_up_proj", 1.0),
    ),
    AdapterCase(
        "adapter-mixture-attention",
        "qwen3-moe",
        _alike("q_proj v_proj", 6),
        seed=5,
        fields={"r": 6, "lora_alpha": 9},
        scales=_alike("q_proj v_proj", 1.5),
        only_layers=(1,),
    ),
)

OF_MIXTURE = ADAPTERS[-1]
EIGHT = (
    OF_MIXTURE,
    *(
        AdapterCase(
            f"adapter-mixture-{seed}",
            OF_MIXTURE.model,
            _alike(_ATTENTION, seed),
            seed=seed,
            fields={"r": seed, "lora_alpha": 2 * seed},
            scales=_alike(_ATTENTION, 2.0),
        )
        for seed in range(1, 8)
    ),
)
"""Adapters of one mixture of experts, each of another rank; the answers with the first are committed."""
