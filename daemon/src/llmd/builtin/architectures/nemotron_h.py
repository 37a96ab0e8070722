"""Nemotron-H and Nemotron 3: each layer has only a state space of Mamba-2, only attention without positions,
only a feed-forward network without gate, or only a mixture of such experts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, Half, plan_without_rope
from llmd.builtin.architectures.glm4_moe import sigmoid_mixture
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mamba import read_mamba
from llmd.builtin.architectures.mixture import ExpertNames, Mixture, shared_expert
from llmd.builtin.architectures.shape import read_shape
from llmd.models.space_names import NEMOTRON_H

DEFAULT_HEAD_DIM = 128
MODULES = Modules(layers="backbone.layers", attention="mixer", feed_forward="mixer")
EMBEDDING, NORM = "backbone.embeddings.weight", "backbone.norm_f.weight"
NAMES = ExpertNames(
    "mixer.gate.weight",
    None,
    "mixer.experts.*.up_proj.weight",
    "mixer.experts.*.down_proj.weight",
    correction="mixer.gate.e_score_correction_bias",
)
TYPES: Mapping[str, str] = {
    "linear_attention": "M",
    "mamba": "M",
    "full_attention": "*",
    "attention": "*",
    "mlp": "-",
    "moe": "E",
}
"""Letters of ``hybrid_override_pattern`` by name in the lists that later configurations have."""
MTP = "mtp."
"""How names of tensors of the draft head begin. In a GGUF file, the head is the block after the layers."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: NVIDIA 2025, "Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer
    Models". Configurations also have a ``time_step_min``, which was used only to draw the first weights.
    """
    kinds = _kinds(ConfigFields(config), config)
    fields = ConfigFields({**config, "num_hidden_layers": len(kinds)})
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    style = LayerStyle(
        eps=fields.positive("layer_norm_epsilon", fields.positive("rms_norm_eps", 1e-5)),
        activation=read_activation(fields, "mlp_hidden_act", "relu2"),
        scale=shape.head_dim**-0.5,
        pre_norms=("norm", "norm"),
        qkv_bias=fields.flag("attention_bias", default=False),
        out_bias=fields.flag("attention_bias", default=False),
        mlp_bias=fields.flag("mlp_bias", default=False),
        gate_up="up",
        modules=MODULES,
    )
    mamba = read_mamba(fields, NEMOTRON_H, "mixer") if "M" in kinds else None
    mixture = _mixture(fields) if "E" in kinds else None
    family = Family(
        "nemotron_h",
        shape,
        style,
        Ends(fields.flag("tie_word_embeddings", default=False), embedding=EMBEDDING, norm=NORM),
        (None,) * shape.num_layers,
        tuple(mixture if kind == "E" else None for kind in kinds),
        tuple(mamba if kind == "M" else None for kind in kinds),
        tuple(_half(kind) for kind in kinds),
    )
    draft = LeftOut("a draft head", (MTP, f"blk.{len(kinds)}."), is_draft=True)
    return msgspec.structs.replace(plan_without_rope(family, fields, context_len), left_out=(draft,))


def _kinds(fields: ConfigFields, config: Config) -> str:
    """Return a letter for each layer."""
    if "hybrid_override_pattern" in fields:
        pattern = fields.text("hybrid_override_pattern")
        for letter in pattern:
            if letter not in TYPES.values():
                fields.refuse_unsupported("hybrid_override_pattern", letter, ", ".join(set(TYPES.values())))
        return pattern
    name = "layers_block_type" if "layers_block_type" in fields else "layer_types"
    listed = config.get(name)
    count = len(listed) if isinstance(listed, list) else fields.size("num_hidden_layers")
    return "".join(TYPES[one] for one in fields.names(name, count, tuple(TYPES)))


def _half(kind: str) -> Half:
    return "mixer" if kind in "M*" else "feed_forward"


def _mixture(fields: ConfigFields) -> Mixture:
    width = fields.size("moe_shared_expert_intermediate_size")
    latent = fields.size("moe_latent_size") if "moe_latent_size" in fields else None
    return msgspec.structs.replace(
        sigmoid_mixture(fields),
        names=NAMES,
        shared=shared_expert("mixer.shared_experts", width, gated=False),
        latent=latent,
        latent_modules=("mixer.fc1_latent_proj", "mixer.fc2_latent_proj"),
    )
