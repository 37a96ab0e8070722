"""Make the GGUF keys that describe a plan. `llmd.models.gguf.config` reads them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Add, Attention, Embed, Head, Norm, Op
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.gguf.deepseek4 import DEEPSEEK_V4
from llmd.models.gguf.deepseek4_names import DEEPSEEK4
from llmd.models.gguf.families import FAMILIES, PERIODS, SCALE, is_sliding, period_of
from llmd.models.gguf.fields import PATTERN, WINDOW
from llmd.models.gguf.indexer_keys import indexer_keys
from llmd.models.gguf.inner_sizes import inner_sizes
from llmd.models.gguf.kimi_linear import KIMI
from llmd.models.gguf.latent_keys import latent_keys
from llmd.models.gguf.layer_keys import has_experts, layer_keys
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.rwkv7 import RWKV7

SAME_PROGRAM: Mapping[str, str] = {
    "mistral": "llama",
    "mixtral": "llama",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "glm4_moe": "glm4moe",
    "gpt_oss": "gpt-oss",
    "qwen3_next": "qwen3next",
    "qwen3_5": "qwen35",
    "qwen3_5_moe": "qwen35moe",
    "granitemoehybrid": "granitehybrid",
    "falcon_h1": "falcon-h1",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "glm4_moe_lite": "deepseek2",
    "deepseek_v32": "deepseek32",
    DEEPSEEK_V4: DEEPSEEK4,
    "glm_moe_dsa": "glm-dsa",
    KIMI: "kimi-linear",
}
"""Architectures of plans that have another name in GGUF files."""

WITH_EXPERTS: Mapping[str, str] = {"nemotron_h": "nemotron_h_moe"}
"""Names of those that have another one with experts."""

ALWAYS_STATE_WINDOW = ("phi3",)
"""For these, llama.cpp guesses the window from the model's size if a file states none."""

OTHER_EPSILON = ("nemotron_h", RWKV7)
"""Architectures whose files have the epsilon of norms under the key of layer norms."""

STATE_LAYERS = ("granitemoehybrid", "nemotron_h", KIMI)
"""Architectures whose files state the heads of keys of each layer, 0 where it has no attention."""

KEY_AND_VALUE = ("attention.key_length", "attention.value_length")

Kind = TypeVar("Kind", bound=Op)


def stored_architecture(plan: ModelPlan) -> str:
    """Return ``general.architecture`` for a plan.

    Raises:
        UnsupportedModelError: llmd does not read such a model from GGUF files, or it has no head.
    """
    name = SAME_PROGRAM.get(plan.architecture, plan.architecture)
    name = WITH_EXPERTS[name] if name in WITH_EXPERTS and has_experts(plan) else name
    if name not in FAMILIES or not plan.has_head:
        raise UnsupportedModelError(
            f"a model of the architecture {plan.architecture} cannot be written as a GGUF file; only generating "
            f"models can, of {', '.join(FAMILIES)}",
            hint="keep it as a directory, which llmd serves as well",
        )
    return name


def config_keys(plan: ModelPlan, config: Config) -> dict[str, Value]:
    """Return the keys without the architecture prefix: everything but RoPE, which `rope_keys` returns.

    ``config`` describes the text model. The plan of a mixture may have no feed-forward network whose width it
    could show.

    Values for which the architecture has no key are left out, so a writer must read the file again and
    compare.
    """
    epsilon = "layer_norm" if plan.architecture in OTHER_EPSILON else "layer_norm_rms"
    keys: dict[str, Value] = {
        "context_length": plan.context_len,
        "embedding_length": _first(plan, Embed).table.view_shape[-1],
        "block_count": plan.num_layers,
        "vocab_size": plan.vocab_size,
        f"attention.{epsilon}_epsilon": _first(plan, Norm).eps,
    }
    return (
        keys | _heads(plan) | inner_sizes(plan, config) | _windows(plan) | _factors(plan) | layer_keys(plan)
    )


def _heads(plan: ModelPlan) -> dict[str, Value]:
    """Return the sizes of attention; some files say of each layer how many heads of keys it has."""
    layers = {part.layer: op for part in plan.parts for op in part.ops if isinstance(op, Attention)}
    if not layers:
        return {"attention.head_count": 0}
    attention = next(iter(layers.values()))
    each = [op.kv_heads if (op := layers.get(layer)) else 0 for layer in range(plan.num_layers)]
    return {
        "attention.head_count": attention.heads,
        "attention.head_count_kv": np.array(each, np.uint32)
        if plan.architecture in STATE_LAYERS
        else attention.kv_heads,
        **(_latent(plan) or dict.fromkeys(KEY_AND_VALUE, attention.head_dim)),
    }


def _latent(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys of latent attention, which files of DeepSeek-V4 do not have: keys are values there."""
    return {} if plan.architecture == DEEPSEEK_V4 else latent_keys(plan) | indexer_keys(plan)


def _windows(plan: ModelPlan) -> dict[str, Value]:
    """Return the sliding window, and which layers have it if that differs from the architecture's default."""
    window = next((group.window for group in plan.groups if group.window is not None), None)
    if window is None:
        return {WINDOW: 0} if plan.architecture in ALWAYS_STATE_WINDOW else {}
    period = PERIODS.get(plan.architecture)
    sliding = {layer for group in plan.groups if group.window is not None for layer in group.layers}
    flags = [layer in sliding for layer in range(plan.num_layers)]
    if period is None or flags == is_sliding(period, plan.num_layers):
        return {WINDOW: window}
    return {WINDOW: window, PATTERN: period_of(flags) or np.array(flags)}


def _factors(plan: ModelPlan) -> dict[str, Value]:
    """Return multipliers and soft caps that only some architectures have."""
    head, attention = _first(plan, Head), next(_each(plan, Attention), None)
    if attention is None:
        return {}
    factors: dict[str, Value] = {}
    is_granite = plan.architecture.startswith("granite")
    if plan.architecture in PERIODS or is_granite:
        factors[SCALE] = attention.scale
    if is_granite:
        factors["embedding_scale"] = _first(plan, Embed).scale
        factors["residual_scale"] = _first(plan, Add).scale
        factors["logit_scale"] = 1 / head.scale
    if attention.softcap is not None:
        factors["attn_logit_softcapping"] = attention.softcap
    if head.softcap is not None:
        factors["final_logit_softcapping"] = head.softcap
    return factors


def _first(plan: ModelPlan, kind: type[Kind]) -> Kind:
    return next(_each(plan, kind))


def _each(plan: ModelPlan, kind: type[Kind]) -> Iterator[Kind]:
    return (op for part in plan.parts for op in part.ops if isinstance(op, kind))
