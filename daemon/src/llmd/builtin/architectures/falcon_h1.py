"""Falcon-H1: attention and the state space of Mamba-2 beside each other in each layer, with multipliers."""

from __future__ import annotations

from llmd.api import KVGroup, ModelPlan, Part, RopeTable
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, embed_part, head_part
from llmd.builtin.architectures.falcon_h1_layer import (
    Multipliers,
    ParallelLayer,
    feed_forward_ops,
    mixer_ops,
)
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mamba import Mamba, read_mamba
from llmd.builtin.architectures.rope import read_rope, rope_table
from llmd.builtin.architectures.shape import Shape, read_shape
from llmd.models.space_names import GRANITE_HYBRID

BIASES = ("attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias")
"""Published models have none, and multipliers would not apply to all of them."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Falcon-LLM Team 2025, "Falcon-H1: A Family of Hybrid-Head Language Models"."""
    fields = ConfigFields(config)
    shape, rope = read_shape(fields), read_rope(fields)
    layer, ends = _layer(fields, shape), _ends(fields)
    context_len = context_len or rope.max_len
    table = rope_table(rope, shape.head_dim, context_len)
    numbers = tuple(range(shape.num_layers))
    layers = (part for number in numbers for part in _parts(layer, number, table))
    return ModelPlan(
        architecture="falcon_h1",
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        context_len=context_len,
        max_context_len=rope.max_context_len,
        groups=(
            KVGroup(0, None, shape.kv_heads, shape.head_dim, numbers),
            KVGroup(1, None, 0, 0, numbers, kind="state", state_bytes=layer.mamba.state_bytes),
        ),
        parts=(embed_part(shape, ends), *layers, head_part(shape, layer.style, ends)),
    )


def _parts(layer: ParallelLayer, number: int, rope: RopeTable) -> tuple[Part, Part]:
    mixer = mixer_ops(layer, number, rope, attention_group=0, state_group=1)
    return (
        Part(f"layer {number} mixer", "mixer", number, mixer),
        Part(f"layer {number} ffn", "ffn", number, feed_forward_ops(layer, number)),
    )


def _ends(fields: ConfigFields) -> Ends:
    return Ends(
        tied=fields.flag("tie_word_embeddings", default=False),
        embed_scale=fields.positive("embedding_multiplier", 1.0),
        head_scale=fields.positive("lm_head_multiplier", 1.0),
        norm="model.final_layernorm.weight",
    )


def _layer(fields: ConfigFields, shape: Shape) -> ParallelLayer:
    for name in BIASES:
        if fields.flag(name, default=False):
            fields.refuse_unsupported(name, value=True, known="false")
    multipliers = _multipliers(fields)
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps", 1e-5),
        activation=read_activation(fields),
        scale=multipliers.scores * shape.head_dim**-0.5,
        pre_norms=("input_layernorm", "pre_ff_layernorm"),
        residual_scale=multipliers.down,
        modules=Modules(feed_forward="feed_forward"),
    )
    return ParallelLayer(shape, style, _mamba(fields, shape), _has_norm(fields), multipliers)


def _mamba(fields: ConfigFields, shape: Shape) -> Mamba:
    expanded = fields.size("mamba_expand", 2) * shape.hidden_size
    return read_mamba(fields, GRANITE_HYBRID, "mamba", inner=fields.size("mamba_d_ssm", expanded))


def _has_norm(fields: ConfigFields) -> bool:
    """Whether what the state space writes is normalised after its gate."""
    has_norm = fields.flag("mamba_rms_norm", default=False)
    if has_norm and fields.flag("mamba_norm_before_gate", default=True):
        fields.refuse_unsupported(
            "mamba_norm_before_gate", value=True, known="false, if mamba_rms_norm is true"
        )
    return has_norm


def _multipliers(fields: ConfigFields) -> Multipliers:
    def several(name: str, count: int) -> list[float]:
        return fields.positives(name, count) if name in fields else [1.0] * count

    gate, down = several("mlp_multipliers", 2)
    entering = fields.positive("ssm_in_multiplier", 1.0)
    attention = fields.positive("attention_in_multiplier", 1.0)
    z, x, b, c, time = (entering * one for one in several("ssm_multipliers", 5))
    return Multipliers(
        scores=attention**2 * fields.positive("key_multiplier", 1.0),
        attended=attention * fields.positive("attention_out_multiplier", 1.0),
        projections={"z": z, "x": x, "b": b, "c": c, "time": time},
        state=fields.positive("ssm_out_multiplier", 1.0),
        gate=gate,
        down=down,
    )
