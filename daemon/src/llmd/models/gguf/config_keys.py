"""Make the GGUF keys that describe a plan. `llmd.models.gguf.config` reads them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Add, Attention, Embed, Glu, Head, Linear, Norm, Op
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Config
from llmd.models.gguf.families import FAMILIES, PERIODS, SCALE, is_sliding
from llmd.models.gguf.fields import PATTERN, WINDOW
from llmd.models.gguf.layer_keys import has_experts, layer_keys
from llmd.models.gguf.metadata import Value

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
}
"""Architectures of plans that have another name in GGUF files."""

ALWAYS_STATE_WINDOW = ("phi3",)
"""For these, llama.cpp guesses the window from the model's size if a file states none."""

Kind = TypeVar("Kind", bound=Op)


def stored_architecture(plan: ModelPlan) -> str:
    """Return ``general.architecture`` for a plan.

    Raises:
        UnsupportedModelError: llmd does not read such a model from GGUF files, or it has no head.
    """
    name = SAME_PROGRAM.get(plan.architecture, plan.architecture)
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
    attention, norm = _first(plan, Attention), _first(plan, Norm)
    keys: dict[str, Value] = {
        "context_length": plan.context_len,
        "embedding_length": plan.hidden_size,
        "block_count": plan.num_layers,
        "vocab_size": plan.vocab_size,
        "attention.head_count": attention.heads,
        "attention.head_count_kv": attention.kv_heads,
        "attention.key_length": attention.head_dim,
        "attention.value_length": attention.head_dim,
        "attention.layer_norm_rms_epsilon": norm.eps,
    }
    return keys | _inner_size(plan, config) | _windows(plan) | _factors(plan, attention) | layer_keys(plan)


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
    stated = flags.index(False) + 1 if False in flags else len(flags) + 1
    is_periodic = flags == is_sliding(stated, plan.num_layers)
    return {WINDOW: window, PATTERN: stated if is_periodic else np.array(flags)}


def _factors(plan: ModelPlan, attention: Attention) -> dict[str, Value]:
    """Return multipliers and soft caps that only some architectures have."""
    head = _first(plan, Head)
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


def _inner_size(plan: ModelPlan, config: Config) -> dict[str, Value]:
    """Return the width between the matrices of feed-forward networks; none if a mixture does not state it."""
    if has_experts(plan):
        stated = config.get("intermediate_size")
        return {"feed_forward_length": stated} if stated else {}
    gates = {op.gate for part in plan.parts if part.kind == "ffn" for op in part.ops if isinstance(op, Glu)}
    widths = (
        weight.view_shape[0]
        for op in _ops(plan)
        if isinstance(op, Linear)
        for out, weight in zip(op.outs, op.weights, strict=True)
        if out in gates
    )
    return {"feed_forward_length": next(widths)}


def _first(plan: ModelPlan, kind: type[Kind]) -> Kind:
    return next(op for op in _ops(plan) if isinstance(op, kind))


def _ops(plan: ModelPlan) -> Iterator[Op]:
    return (op for part in plan.parts for op in part.ops)
