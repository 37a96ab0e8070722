"""Translate the RoPE settings of a GGUF file to the fields of ``config.json``."""

from __future__ import annotations

import math
from typing import Any

from llmd.models.gguf.deepseek4_names import DEEPSEEK4
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.gguf_model import GgufModel

DIVISORS, LONG_DIVISORS, SHORT_DIVISORS = (
    f"{name}.weight" for name in ("rope_freqs", "rope_factors_long", "rope_factors_short")
)
"""Tensors that are part of the configuration: a divisor for each rotated pair."""

NEVER = 1e20
"""A divisor from which on a pair does not turn within any context."""

ORIGINAL_LEN = "rope.scaling.original_context_length"
SCALING_TYPES = ("none", "linear", "yarn", "longrope")
UNTRUNCATED = ("gpt-oss",)
"""Architectures whose YaRN keeps fractions of the pairs between which frequencies change; no key says so."""


SCALING_NOTHING = (DEEPSEEK4,)
"""Architectures whose YaRN multiplies neither elements nor scores, whatever a file states."""
SCALING_SCORES = ("deepseek2", "deepseek32", "glm-dsa")
"""Architectures whose YaRN multiplies scores, by a factor that `LOG_MULTIPLIER` gives, and not elements."""
LOG_MULTIPLIER = "rope.scaling.yarn_log_multiplier"
"""A tenth of ``mscale_all_dim``."""


def rope_config(fields: GgufFields, model: GgufModel, head_dim: int) -> dict[str, Any]:
    """Return ``rope_theta``, ``rope_scaling``, and ``partial_rotary_factor`` if a head is partly rotated.

    Raises:
        CheckpointError: a key has the wrong type.
        UnsupportedModelError: the scaling type is unknown.
    """
    config = {
        "rope_theta": fields.real("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(fields, model),
    }
    num_rotated = fields.integer("rope.dimension_count", head_dim)
    if num_rotated != head_dim:
        # Add half an element, because the product with head_dim is rounded down.
        config["partial_rotary_factor"] = (num_rotated + 0.5) / head_dim
    return config


def _scaling(fields: GgufFields, model: GgufModel) -> dict[str, Any] | None:
    kind = fields.text("rope.scaling.type", "none")
    if kind not in SCALING_TYPES:
        raise fields.refuse("rope.scaling.type", kind, ", ".join(SCALING_TYPES))
    if fields.has_tensor(LONG_DIVISORS):
        return _longrope(fields, model)
    if fields.has_tensor(DIVISORS):
        if kind != "none":
            raise fields.refuse("rope.scaling.type", kind, f"none, where there is {DIVISORS}")
        return _divided(model)
    if kind == "linear":
        return {"rope_type": "linear", "factor": fields.real("rope.scaling.factor", 1.0)}
    return _yarn(fields) if kind == "yarn" else None


def _divided(model: GgufModel) -> dict[str, Any]:
    """Return Llama 3's scaling, which is stored as the result of its formula for each pair.

    It is expressed as longrope with the same list for every length and no attention factor. Gemma 4 has such
    large divisors that all but the first pairs do not turn.
    """
    divisors = _numbers(model, DIVISORS)
    if max(divisors, default=1.0) >= NEVER:
        num_turning = sum(divisor < NEVER for divisor in divisors)
        # Add half a pair, because the product with their number is rounded down.
        return {
            "rope_type": "proportional",
            "partial_rotary_factor": (num_turning + 0.5) / len(divisors),
        }
    return {
        "rope_type": "longrope",
        "short_factor": divisors,
        "long_factor": divisors,
        "attention_factor": 1.0,
    }


def _longrope(fields: GgufFields, model: GgufModel) -> dict[str, Any]:
    return {
        "rope_type": "longrope",
        "short_factor": _numbers(model, SHORT_DIVISORS),
        "long_factor": _numbers(model, LONG_DIVISORS),
        "original_max_position_embeddings": fields.integer(ORIGINAL_LEN, None),
        "attention_factor": fields.real("rope.scaling.attn_factor", None),
    }


def _yarn(fields: GgufFields) -> dict[str, Any]:
    """Return YaRN's scaling. The file's attention factor multiplies the one from YaRN's formula."""
    factor = fields.real("rope.scaling.factor")
    latent = fields.architecture in SCALING_SCORES
    by_formula = 1.0 if latent else yarn_attention_factor(factor)
    multiplies = fields.architecture not in SCALING_NOTHING
    attention_factor = by_formula * fields.real("rope.scaling.attn_factor", 1.0)
    return {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": fields.integer(ORIGINAL_LEN, None),
        **({"attention_factor": attention_factor} if multiplies else {}),
        **({"mscale_all_dim": 10 * fields.real(LOG_MULTIPLIER, 0.0) or None} if latent else {}),
        "beta_fast": fields.real("rope.scaling.yarn_beta_fast", 32.0),
        "beta_slow": fields.real("rope.scaling.yarn_beta_slow", 1.0),
        "truncate": fields.architecture not in UNTRUNCATED,
    }


def yarn_attention_factor(factor: float) -> float:
    """Return the attention factor from YaRN's formula."""
    return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


def _numbers(model: GgufModel, name: str) -> list[float]:
    model.tensor(name)
    return [float(divisor) for divisor in model.view(name).reshape(-1)]
