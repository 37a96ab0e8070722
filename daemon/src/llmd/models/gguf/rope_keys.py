"""Make the GGUF keys for a model's RoPE. `llmd.models.gguf.rope` reads them back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Attention, Rope, RopeTable
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.gguf.deepseek4 import COMPRESSED_THETA, DEEPSEEK_V4
from llmd.models.gguf.fields import ROTATED
from llmd.models.gguf.latent_keys import rotated_elements
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.rope import (
    DIVISORS,
    LOG_MULTIPLIER,
    LONG_DIVISORS,
    ORIGINAL_LEN,
    SHORT_DIVISORS,
    yarn_attention_factor,
)

THETA, LOCAL_THETA = "rope.freq_base", "rope.freq_base_swa"
LOCAL_ROTATED = f"{ROTATED}_swa"
STANDING = 1e30
"""The divisor of pairs that do not turn, as llama.cpp's converter writes it."""
TWO_BASES = ("gemma3", "gemma4")
"""Architectures whose layers with a window have another base."""
GEMMA_THETA = 1000000.0
DEFAULT_THETA, COMPRESSED_DEFAULT = 10000.0, 160000.0
MULTIPLIER = "rope.scaling.attn_factor"
PLAIN = ("default", "none")
MULTI_AXIS = ("qwen3_5", "qwen3_5_moe")
"""Architectures of plans whose pairs follow the axes of an image in turn. llama.cpp refuses files that do not
state how many pairs each axis has. A text has the same position on all axes.
"""


class RopeKeys(msgspec.Struct, frozen=True):
    """The RoPE settings of a GGUF file."""

    keys: Mapping[str, Value]
    """Without the architecture prefix."""
    tensors: Mapping[str, NDArray[np.float32]] = {}
    """Divisors for each rotated pair, by tensor name."""


def rope_keys(config: Config, plan: ModelPlan) -> RopeKeys:
    """Return the RoPE settings of ``plan``, which was made from ``config``.

    Raises:
        UnsupportedModelError: GGUF files cannot express them.
    """
    if plan.architecture == DEEPSEEK_V4:
        return RopeKeys(_of_compressed_attention(config, plan))
    stated, local = _stated(config)
    default = GEMMA_THETA if plan.architecture in TWO_BASES else DEFAULT_THETA
    theta = float(stated.get("rope_theta") or default)
    table = _table(plan)
    if table is None:
        return RopeKeys(_unused(plan, theta))
    keys: dict[str, Value] = {THETA: theta, ROTATED: table.rotary_dim}
    if plan.architecture in MULTI_AXIS:
        keys["rope.dimension_sections"] = _pairs_of_axes(stated, table.rotary_dim // 2)
    if plan.architecture == "gemma4":
        keys[LOCAL_ROTATED] = _tables(plan, with_window=True)[-1].rotary_dim
    if plan.architecture in TWO_BASES:
        keys[LOCAL_THETA] = float(local or DEFAULT_THETA)
    kind = stated.get("rope_type", stated.get("type", "default"))
    if kind == "llama3" or (kind == "longrope" and _is_one_list(stated)):
        plain = theta ** (-np.arange(0, table.rotary_dim, 2) / table.rotary_dim)
        return RopeKeys(keys, {DIVISORS: (plain / table.inv_freq).astype(np.float32)})
    if kind == "proportional":
        return RopeKeys(keys, {DIVISORS: _divisors_of_part(theta, table)})
    if kind in ("longrope", "su"):
        return _longrope(keys, stated, table)
    return RopeKeys(
        {**keys, **_scaling(str(kind), stated, table, is_latent=rotated_elements(plan) is not None)}
    )


def _of_compressed_attention(config: Config, plan: ModelPlan) -> dict[str, Value]:
    """Return the keys of DeepSeek-V4, whose scaling is that of layers that compress. All its tables begin
    with pairs that do not turn.
    """
    new: Mapping[str, Any] = config.get("rope_parameters") or {}
    plain, compressed = (new["main"], new["compress"]) if "compress" in new else ({}, {})
    scaling = _present(config) | _present(compressed or new) | _present(config.get("rope_scaling") or {})
    table = next(iter(_tables(plan, with_window=False) + _tables(plan, with_window=True)))
    kind = str(scaling.get("rope_type", scaling.get("type", "default")))
    keys = _scaling(kind, scaling, table, is_latent=False)
    keys.pop(MULTIPLIER, None)  # llama.cpp never multiplies by it
    return keys | {
        THETA: float(plain.get("rope_theta") or config.get("rope_theta") or DEFAULT_THETA),
        COMPRESSED_THETA: float(
            compressed.get("rope_theta") or config.get("compress_rope_theta") or COMPRESSED_DEFAULT
        ),
        ROTATED: 2 * sum(freq > 0 for freq in table.inv_freq),
    }


def _stated(config: Config) -> tuple[Mapping[str, Any], float | None]:
    """Return the RoPE fields from all their places, and the base for Gemma 3's layers with a window."""
    text = {**config, **(config.get("text_config") or {})}
    new = text.get("rope_parameters") or {}
    local = text.get("rope_local_base_freq")
    if new.get("full_attention"):
        local = (new.get("sliding_attention") or {}).get("rope_theta") or local
        new = new["full_attention"]
    stated = {**_present(text), **_present(new), **_present(text.get("rope_scaling") or {})}
    return stated, local


def _pairs_of_axes(stated: Mapping[str, Any], pairs: int) -> NDArray[np.int32]:
    """Return the pairs of time, height and width, and of a fourth axis that no model has; ``[4]``."""
    axes = stated.get("mrope_section") or [(pairs + 2 - axis) // 3 for axis in range(3)]
    return np.array([*axes, 0], np.int32)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def _unused(plan: ModelPlan, theta: float) -> dict[str, Value]:
    """Return the keys that files have if attention has no positions; none if there is no attention."""
    dims = (op.head_dim for part in plan.parts for op in part.ops if isinstance(op, Attention))
    width = rotated_elements(plan) or next(dims, None)
    return {} if width is None else {THETA: theta, ROTATED: width}


def _table(plan: ModelPlan) -> RopeTable | None:
    """Return the table of the layers without a window, if they have a separate one; else the only table."""
    found = _tables(plan, with_window=False) or _tables(plan, with_window=True)
    return found[0] if found else None


def _tables(plan: ModelPlan, *, with_window: bool) -> list[RopeTable]:
    """Return the tables of the layers that have a window, or of those that have none."""
    layers = {
        layer for group in plan.groups if (group.window is not None) is with_window for layer in group.layers
    }
    ropes = (op for part in plan.parts if part.layer in layers for op in part.ops if isinstance(op, Rope))
    return [op.table for op in ropes]


def _divisors_of_part(theta: float, table: RopeTable) -> NDArray[np.float32]:
    """Return the divisors of a table in which only the first pairs turn."""
    plain = theta ** (-np.arange(0, table.rotary_dim, 2) / table.rotary_dim)
    turning = np.array(table.inv_freq)
    divisors = np.full(len(plain), STANDING, np.float32)
    turns = turning > 0
    divisors[turns] = plain[turns] / turning[turns]
    return divisors


def _is_one_list(stated: Mapping[str, Any]) -> bool:
    """Whether this is the result of Llama 3's formula: see `llmd.models.gguf.rope`."""
    return stated.get("short_factor") == stated.get("long_factor") and stated.get("attention_factor") == 1


def _longrope(keys: dict[str, Value], stated: Mapping[str, Any], table: RopeTable) -> RopeKeys:
    lists = {LONG_DIVISORS: stated["long_factor"], SHORT_DIVISORS: stated["short_factor"]}
    keys |= {"rope.scaling.type": "longrope", MULTIPLIER: table.factor}
    if trained := stated.get("original_max_position_embeddings"):
        keys[ORIGINAL_LEN] = trained
    return RopeKeys(keys, {name: np.array(values, np.float32) for name, values in lists.items()})


def _scaling(kind: str, stated: Mapping[str, Any], table: RopeTable, *, is_latent: bool) -> dict[str, Value]:
    """Return the keys of a scaling."""
    if kind in PLAIN:
        return {}
    if kind not in ("linear", "yarn"):
        raise UnsupportedModelError(
            f"the model uses {kind} RoPE scaling, which GGUF files cannot express",
            hint="keep it as a directory",
        )
    factor = float(stated["factor"])
    keys: dict[str, Value] = {"rope.scaling.type": kind, "rope.scaling.factor": factor}
    if kind == "yarn":
        trained = stated.get("original_max_position_embeddings", stated["max_position_embeddings"])
        keys |= {
            ORIGINAL_LEN: trained,
            "rope.scaling.yarn_beta_fast": float(stated.get("beta_fast", 32.0)),
            "rope.scaling.yarn_beta_slow": float(stated.get("beta_slow", 1.0)),
        }
        if is_latent:
            return keys | _of_scores(stated, table)
        multiplier = table.factor / yarn_attention_factor(factor)
        if not math.isclose(multiplier, 1.0):
            keys[MULTIPLIER] = multiplier
    return keys


def _of_scores(stated: Mapping[str, Any], table: RopeTable) -> dict[str, Value]:
    """Return the keys of YaRN in latent attention, which multiplies scores."""
    if not math.isclose(table.factor, 1.0):
        raise UnsupportedModelError(
            "the model's RoPE scaling has unequal mscale and mscale_all_dim, which GGUF files cannot express",
            hint="keep it as a directory",
        )
    multiplier = stated.get("mscale_all_dim")
    return {LOG_MULTIPLIER: 0.1 * multiplier} if multiplier else {}
