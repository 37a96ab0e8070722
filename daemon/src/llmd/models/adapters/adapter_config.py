"""Read ``adapter_config.json``: how strongly an adapter acts, and whether llmd can apply it.

Source: PEFT's ``LoraConfig``, and ``LoraLayer`` for the scales.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.json_file import converted, read_object

CONFIG_FILE = "adapter_config.json"
MAX_CONFIG_BYTES = 16_000_000

_Value = TypeVar("_Value")

CHANGES_BASE = ("pissa", "olora", "corda", "loftq")
"""Beginnings of ``init_lora_weights``: training began with other weights of the model than those that it has
without the adapter."""


class AdapterConfig(msgspec.Struct, frozen=True):
    """The fields of ``adapter_config.json`` that matter here.

    Others do not change what a stored adapter computes: which layers and modules it has follows from its
    tensors, and ``fan_in_fan_out`` only says how PEFT's model stores its matrices.
    """

    peft_type: str
    r: int
    """The rank, except where ``rank_pattern`` has another."""
    lora_alpha: float
    """Divided by the rank, or by its root, this is the scale."""
    use_rslora: bool | None = False
    """Whether it is divided by the root. Source: Kalajdzievski 2023, "A Rank Stabilization Scaling Factor for
    Fine-Tuning with LoRA"."""
    rank_pattern: Mapping[str, int] | None = None
    """Ranks by regular expressions of the end of a module's name; the first that fits is used."""
    alpha_pattern: Mapping[str, float] | None = None
    """The same for ``lora_alpha``."""
    bias: str | None = "none"
    lora_bias: bool | None = False
    use_dora: bool | None = False
    use_qalora: bool | None = False
    modules_to_save: list[str] | None = None
    target_parameters: list[str] | None = None
    trainable_token_indices: Any = None
    layer_replication: Any = None
    alora_invocation_tokens: Any = None
    init_lora_weights: bool | str | None = True

    def rank_of(self, module: str) -> int:
        """Return the rank of a module's matrices."""
        return _first_match(self.rank_pattern or {}, module, self.r)

    def scale_of(self, module: str) -> float:
        """Return the number that the product of a module's matrices is multiplied by."""
        rank = self.rank_of(module)
        alpha = _first_match(self.alpha_pattern or {}, module, self.lora_alpha)
        return alpha / (math.sqrt(rank) if self.use_rslora else rank)


def read_adapter_config(directory: Path) -> AdapterConfig:
    """Read the configuration of the adapter in a directory.

    Raises:
        CheckpointError: the file is missing, damaged or contradicts itself.
        UnsupportedModelError: the adapter is more than products that are added to those of linear layers.
    """
    path = directory / CONFIG_FILE
    if not path.is_file():
        raise CheckpointError(
            "there is no such file",
            file=str(path),
            hint="an adapter is a directory with adapter_config.json and adapter_model.safetensors",
        )
    config = converted(read_object(path, max_bytes=MAX_CONFIG_BYTES), AdapterConfig, file=str(path))
    _check_numbers(config, path)
    for found in _unsupported(config):
        raise UnsupportedModelError(
            f"{path}: {found}, which llmd does not apply",
            hint="merge the adapter into the model and serve the result, or train one without it",
        )
    return config


def _check_numbers(config: AdapterConfig, path: Path) -> None:
    ranks = [config.r, *(config.rank_pattern or {}).values()]
    alphas = [config.lora_alpha, *(config.alpha_pattern or {}).values()]
    if min(ranks) < 1 or not all(map(math.isfinite, alphas)):
        raise CheckpointError(
            f"ranks are {ranks} and alphas {alphas}: a rank must be at least 1, and an alpha a number",
            file=str(path),
            hint="copy the adapter again from where it came from",
        )
    for pattern in (*(config.rank_pattern or {}), *(config.alpha_pattern or {})):
        try:
            re.compile(pattern)
        except re.error as error:
            raise CheckpointError(
                f"{pattern!r} is not a regular expression: {error}",
                file=str(path),
                hint="copy the adapter again from where it came from",
            ) from error


def _unsupported(config: AdapterConfig) -> list[str]:
    """Return what the adapter has that cannot be applied, by the fields' names."""
    begun = config.init_lora_weights
    found = {
        f"peft_type is {config.peft_type}, not LORA": config.peft_type != "LORA",
        "use_dora is set (DoRA)": config.use_dora,
        "use_qalora is set": config.use_qalora,
        f"bias is {config.bias} (it trains biases)": config.bias not in (None, "none"),
        "lora_bias is set (its matrices have biases)": config.lora_bias,
        f"modules_to_save has {config.modules_to_save}": config.modules_to_save,
        f"target_parameters has {config.target_parameters} (experts)": config.target_parameters,
        "trainable_token_indices is set (it trains embeddings)": config.trainable_token_indices,
        "layer_replication is set": config.layer_replication,
        "alora_invocation_tokens is set (an activated adapter)": config.alora_invocation_tokens,
        f"init_lora_weights is {begun} (it changes the model's own weights)": isinstance(begun, str)
        and begun.startswith(CHANGES_BASE),
    }
    return [text for text, holds in found.items() if holds]


def _first_match(patterns: Mapping[str, _Value], module: str, default: _Value) -> _Value:
    """Return the value of the first pattern that a module's name ends with, as PEFT does."""
    fitting = (value for pattern, value in patterns.items() if re.match(rf"(.*\.)?({pattern})$", module))
    return next(fitting, default)
