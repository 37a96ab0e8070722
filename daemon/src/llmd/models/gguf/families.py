"""The GGUF architectures that llmd runs, and the keys that only some of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from llmd.models.gguf.deepseek4 import DEEPSEEK_V4, deepseek4_fields
from llmd.models.gguf.deepseek4_names import DEEPSEEK4
from llmd.models.gguf.fields import PATTERN, WINDOW, GgufFields, head_dim
from llmd.models.gguf.gemma4 import gemma4_fields
from llmd.models.gguf.indexers import sparse_fields
from llmd.models.gguf.kimi_linear import kimi_linear_fields
from llmd.models.gguf.mixtures import (
    EXPERTS,
    GATING,
    SIGMOID,
    SOFTMAX,
    deepseek2_fields,
    dense_first,
    expert_width,
    experts,
    sigmoid_experts,
)
from llmd.models.gguf.rwkv7 import rwkv7_fields
from llmd.models.gguf.state_spaces import (
    FALCON_MULTIPLIERS,
    falcon_h1_fields,
    having_tensor,
    mamba2_fields,
    state_spaces,
)
from llmd.models.space_names import GRANITE_HYBRID, NEMOTRON_H

SCALE = "attention.scale"

MAX_LAYERS = 4096

PERIODS: Mapping[str, int] = {"gemma2": 2, "gemma3": 6}
"""By architecture, n: every n-th layer has no window and all others do, unless a file says otherwise."""

Reader = Callable[[GgufFields], dict[str, Any]]


class Family(msgspec.Struct, frozen=True):
    """A decoder architecture."""

    name: str
    """Prefix of its class names in transformers."""
    model_type: str
    read: Reader
    """Reads the keys that not every architecture has."""
    interleaved: bool = False
    """RoPE rotates neighbouring elements of a head; queries and keys are stored in that order."""
    bare: str = "Model"
    """Suffix of the class without a head."""
    mixes: bool = False
    """Its models may have experts."""
    form: Mapping[str, Any] = {}
    """Fields that describe how files store tensors in another way than transformers does."""
    in_weights: Mapping[str, Any] = {}
    """Fields of multipliers that files have in their weights, with the values that remain."""

    def config(self, fields: GgufFields) -> dict[str, Any]:
        """Return the fields that not every architecture has."""
        return {**self.form, **self.in_weights, **self.read(fields)}


def _biases(fields: GgufFields) -> dict[str, Any]:
    return {
        "attention_bias": fields.has_tensor("blk.0.attn_q.bias"),
        "mlp_bias": fields.has_tensor("blk.0.ffn_gate.bias"),
    }


def _granite(fields: GgufFields) -> dict[str, Any]:
    return _biases(fields) | {
        "attention_multiplier": fields.real(SCALE, head_dim(fields) ** -0.5),
        "embedding_multiplier": fields.real("embedding_scale", 1.0),
        "residual_multiplier": fields.real("residual_scale", 1.0),
        "logits_scaling": fields.real("logit_scale", 1.0),
    }


def _phi3(fields: GgufFields) -> dict[str, Any]:
    return {"sliding_window": fields.integer(WINDOW, 0) or None}


def _olmo2(fields: GgufFields) -> dict[str, Any]:
    if window := fields.integer(WINDOW, 0):
        raise fields.refuse(WINDOW, window, "no window, as in OLMo 2")
    return _biases(fields)


def _mixtral(fields: GgufFields) -> dict[str, Any]:
    return experts(fields, "num_local_experts") | {"sliding_window": None}


def _qwen2_moe(fields: GgufFields) -> dict[str, Any]:
    shared = fields.integer("expert_shared_feed_forward_length", 0)
    return experts(fields, "num_experts") | {
        "moe_intermediate_size": expert_width(fields),
        "shared_expert_intermediate_size": shared or fields.integer("feed_forward_length"),
        "norm_topk_prob": False,
    }


def _qwen3_moe(fields: GgufFields) -> dict[str, Any]:
    return (
        _biases(fields)
        | experts(fields, "num_experts")
        | {"moe_intermediate_size": expert_width(fields), "norm_topk_prob": True}
    )


def _olmoe(fields: GgufFields) -> dict[str, Any]:
    return experts(fields, "num_experts") | {"norm_topk_prob": False}


def _granite_moe(fields: GgufFields) -> dict[str, Any]:
    return (
        _granite(fields)
        | experts(fields, "num_local_experts")
        | {"shared_intermediate_size": fields.integer("expert_shared_feed_forward_length", 0)}
    )


def _glm4_moe(fields: GgufFields) -> dict[str, Any]:
    return (
        _biases(fields)
        | sigmoid_experts(fields)
        | dense_first(fields)
        | {"use_qk_norm": fields.has_tensor("blk.0.attn_q_norm.weight")}
    )


def _qwen3_next(fields: GgufFields) -> dict[str, Any]:
    return (
        _hybrid(fields)
        | _hybrid_experts(fields)
        | {"fused_qkvz": fields.has_tensor("blk.0.ssm_in.weight"), "norm_topk_prob": True}
    )


def _qwen3_5_moe(fields: GgufFields) -> dict[str, Any]:
    fused = fields.has_tensor("blk.0.ffn_gate_up_exps.weight")
    return _hybrid(fields) | _hybrid_experts(fields) | {"fused_experts": fused}


def _hybrid(fields: GgufFields) -> dict[str, Any]:
    """Return the sizes of layers with states; such layers are told by their tensors."""
    heads = fields.integer("ssm.time_step_rank")
    layers = fields.integer("block_count") - fields.integer("nextn_predict_layers", 0)
    linear = having_tensor(fields, "ssm_a")
    return _biases(fields) | {
        "num_hidden_layers": layers,
        "layer_types": ["linear_attention" if one else "full_attention" for one in linear],
        "linear_conv_kernel_dim": fields.integer("ssm.conv_kernel"),
        "linear_key_head_dim": fields.integer("ssm.state_size"),
        "linear_num_key_heads": fields.integer("ssm.group_count"),
        "linear_num_value_heads": heads,
        "linear_value_head_dim": fields.integer("ssm.inner_size") // max(1, heads),
    }


def _hybrid_experts(fields: GgufFields) -> dict[str, Any]:
    return experts(fields, "num_experts") | {
        "moe_intermediate_size": expert_width(fields),
        "shared_expert_intermediate_size": fields.integer("expert_shared_feed_forward_length", 0)
        or expert_width(fields),
    }


def _granite_hybrid(fields: GgufFields) -> dict[str, Any]:
    """Return the fields of Granite 4; ``rope.scaling.finetuned`` says whether attention has positions."""
    experts = fields.integer(EXPERTS, 0)
    has_state = having_tensor(fields, "ssm_in.weight")
    width = fields.integer("feed_forward_length")
    return (
        (_granite_moe(fields) if experts else _granite(fields) | {"shared_intermediate_size": width})
        | state_spaces(fields, GRANITE_HYBRID)
        | {
            "layer_types": ["mamba" if one else "attention" for one in has_state],
            "position_embedding_type": "nope" if fields.flags("rope.scaling.finetuned") is False else "rope",
            "mamba_expand": fields.integer("ssm.inner_size") // max(1, fields.integer("embedding_length")),
        }
    )


def _nemotron_h(fields: GgufFields) -> dict[str, Any]:
    parts = {"M": "ssm_in.weight", "*": "attn_q.weight", "E": "ffn_up_exps.weight"}
    having = {letter: having_tensor(fields, tensor) for letter, tensor in parts.items()}
    layers = len(having["M"])
    kinds = [next((letter for letter in parts if having[letter][layer]), "-") for layer in range(layers)]
    mixed = {} if "E" not in kinds else sigmoid_experts(fields)
    return (
        state_spaces(fields, NEMOTRON_H)
        | {
            "hybrid_override_pattern": "".join(kinds),
            "num_hidden_layers": layers,
            "mlp_hidden_act": "relu2",
            "moe_shared_expert_intermediate_size": fields.integer("expert_shared_feed_forward_length", 0),
            "moe_latent_size": fields.integer("moe_latent_size", 0) or None,
        }
        | mixed
    )


def _gpt_oss(fields: GgufFields) -> dict[str, Any]:
    return (
        _biases(fields)
        | experts(fields, "num_local_experts")
        | {
            "intermediate_size": expert_width(fields),
            "sliding_window": fields.integer(WINDOW, 128) or None,
        }
    )


def _gemma2(fields: GgufFields) -> dict[str, Any]:
    return _gemma(fields, largest=46, period=PERIODS["gemma2"]) | {
        "attn_logit_softcapping": fields.real("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": fields.real("final_logit_softcapping", 30.0),
        "sliding_window": fields.integer(WINDOW, 4096) or None,
    }


def _gemma3(fields: GgufFields) -> dict[str, Any]:
    return _gemma(fields, largest=62, period=PERIODS["gemma3"]) | {
        "final_logit_softcapping": fields.real("final_logit_softcapping", None),
        "sliding_window": fields.integer(WINDOW, 4096) or None,
        "rope_theta": fields.real("rope.freq_base", 1000000.0),
        "rope_local_base_freq": fields.real("rope.freq_base_swa", 10000.0),
    }


def _gemma(fields: GgufFields, *, largest: int, period: int) -> dict[str, Any]:
    """Return the attention scale and the layer types, which most files do not state.

    The scale follows from the head dimension; in the model with ``largest`` layers, from the hidden size per
    head.
    """
    layers = fields.integer("block_count")
    width = head_dim(fields)
    if layers == largest:
        width = max(1, fields.integer("embedding_length") // max(1, fields.integer("attention.head_count")))
    sliding = fields.flags(PATTERN) or period
    if isinstance(sliding, int):
        sliding = is_sliding(sliding, min(layers, MAX_LAYERS))
    return {
        "query_pre_attn_scalar": fields.positive(SCALE, width**-0.5) ** -2,
        "layer_types": ["sliding_attention" if slides else "full_attention" for slides in sliding],
    }


def is_sliding(period: int, num_layers: int) -> list[bool]:
    """Return which layers have a window if every ``period``-th has none."""
    return [(layer + 1) % period != 0 for layer in range(num_layers)]


def period_of(flags: Sequence[bool]) -> int | None:
    """Return the period for which `is_sliding` gives these flags; None: they follow none."""
    period = flags.index(False) + 1 if False in flags else len(flags) + 1
    return period if flags == is_sliding(period, len(flags)) else None


_SEPARATE = {"fused_experts": False}
_SPLIT = {"split_kv_b": True}
_RATES = {"negative_rates": True}
_TILED = {**_RATES, "tiled_heads": True}

FAMILIES: Mapping[str, Family] = {
    "llama": Family("Llama", "llama", _biases, interleaved=True),
    "qwen2": Family("Qwen2", "qwen2", _biases),
    "qwen3": Family("Qwen3", "qwen3", _biases),
    "phi3": Family("Phi3", "phi3", _phi3),
    "gemma2": Family("Gemma2", "gemma2", _gemma2),
    "gemma3": Family("Gemma3", "gemma3_text", _gemma3, bare="TextModel"),
    "gemma4": Family("Gemma4", "gemma4_text", gemma4_fields, bare="TextModel", mixes=True),
    "granite": Family("Granite", "granite", _granite, interleaved=True),
    "olmo2": Family("Olmo2", "olmo2", _olmo2),
    "qwen2moe": Family("Qwen2Moe", "qwen2_moe", _qwen2_moe, mixes=True),
    "qwen3moe": Family("Qwen3Moe", "qwen3_moe", _qwen3_moe, mixes=True),
    "olmoe": Family("Olmoe", "olmoe", _olmoe, mixes=True),
    "granitemoe": Family(
        "GraniteMoe", "granitemoe", _granite_moe, interleaved=True, mixes=True, form=_SEPARATE
    ),
    "glm4moe": Family("Glm4Moe", "glm4_moe", _glm4_moe, mixes=True),
    "deepseek2": Family(
        "DeepseekV2", "deepseek_v2", deepseek2_fields, interleaved=True, mixes=True, form=_SPLIT
    ),
    "deepseek32": Family(
        "DeepseekV32", "deepseek_v32", sparse_fields, interleaved=True, mixes=True, form=_SPLIT
    ),
    DEEPSEEK4: Family("DeepseekV4", DEEPSEEK_V4, deepseek4_fields, interleaved=True, mixes=True),
    "glm-dsa": Family("GlmMoeDsa", "glm_moe_dsa", sparse_fields, interleaved=True, mixes=True, form=_SPLIT),
    "qwen3next": Family(
        "Qwen3Next", "qwen3_next", _qwen3_next, mixes=True, form={**_RATES, "fused_qkvz": False}
    ),
    "qwen35": Family("Qwen3_5", "qwen3_5_text", _hybrid, bare="TextModel", form=_TILED),
    "qwen35moe": Family(
        "Qwen3_5Moe",
        "qwen3_5_moe_text",
        _qwen3_5_moe,
        bare="TextModel",
        mixes=True,
        form=_TILED | _SEPARATE,
    ),
    "granitehybrid": Family(
        "GraniteMoeHybrid",
        "granitemoehybrid",
        _granite_hybrid,
        interleaved=True,
        mixes=True,
        form=_RATES | _SEPARATE,
    ),
    "nemotron_h": Family("NemotronH", "nemotron_h", _nemotron_h, form=_RATES),
    "nemotron_h_moe": Family("NemotronH", "nemotron_h", _nemotron_h, mixes=True, form=_RATES),
    "falcon-h1": Family(
        "FalconH1", "falcon_h1", falcon_h1_fields, form=_RATES, in_weights=FALCON_MULTIPLIERS
    ),
    "mamba2": Family("Mamba2", "mamba2", mamba2_fields, form=_RATES),
    "kimi-linear": Family("KimiLinear", "kimi_linear", kimi_linear_fields, mixes=True, form=_RATES | _SPLIT),
    "rwkv7": Family("RWKV7", "rwkv7", rwkv7_fields, form={"joined_shares": True}),
    "gpt-oss": Family("GptOss", "gpt_oss", _gpt_oss, mixes=True, form=_SEPARATE),
}
"""Decoders by ``general.architecture``."""

MIXTURES: Mapping[str, Family] = {
    "llama": Family("Mixtral", "mixtral", _mixtral, interleaved=True),
}
"""Those that also name mixtures of experts: the family of a file with experts."""

SIGMOID_ROUTERS: Mapping[str, Family] = {
    "deepseek2": Family(
        "DeepseekV3", "deepseek_v3", deepseek2_fields, interleaved=True, mixes=True, form=_SPLIT
    ),
}
"""Those that also name models whose routers have sigmoids."""

FORM_FIELDS = frozenset(
    {"rope_interleave", *(field for family in FAMILIES.values() for field in family.form)}
)
"""Fields of configurations that only GGUF files need: see `Family.form`."""


def has_experts(fields: GgufFields) -> bool:
    """Whether the file is a mixture of experts."""
    return bool(fields.integer(EXPERTS, 0) > 0)


def family_of(fields: GgufFields) -> Family | None:
    """Return the family of a decoder; None if llmd does not run its architecture, or not with experts."""
    if fields.architecture in SIGMOID_ROUTERS and fields.integer(GATING, SOFTMAX) == SIGMOID:
        return SIGMOID_ROUTERS[fields.architecture]
    family = FAMILIES.get(fields.architecture)
    if not has_experts(fields):
        return family
    return MIXTURES.get(fields.architecture) or (family if family and family.mixes else None)
