"""gpt-oss: mixtures of experts with clamped gates, attention with sinks and a window in every other layer."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, Family, plan_with_one_rope
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import MAX_EXPERTS, ExpertNames, Mixture, StackLayout, read_top_k
from llmd.builtin.architectures.shape import read_shape
from llmd.builtin.architectures.windows import layer_windows

WINDOW = 128
GATE_SLOPE = 1.702
"""Of the sigmoid of a gate; ``quick_gelu`` has no other."""
LIMIT = 7.0

ROUTER, ROUTER_BIAS = "mlp.router.weight", "mlp.router.bias"
GATE_UP, DOWN = "mlp.experts.gate_up_proj", "mlp.experts.down_proj"
FUSED = ExpertNames(
    ROUTER,
    GATE_UP,
    GATE_UP,
    DOWN,
    router_bias=ROUTER_BIAS,
    biases=(f"{GATE_UP}_bias", f"{GATE_UP}_bias", f"{DOWN}_bias"),
)
SEPARATE = ExpertNames(
    ROUTER,
    router_bias=ROUTER_BIAS,
    biases=(
        "mlp.experts.*.gate_proj.bias",
        "mlp.experts.*.up_proj.bias",
        "mlp.experts.*.down_proj.bias",
    ),
)


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card"."""
    fields = ConfigFields(config)
    shape = read_shape(fields)
    has_biases = fields.flag("attention_bias", default=True)
    fields.choice("hidden_act", {"silu": True}, "silu")
    if (slope := fields.positive("swiglu_alpha", GATE_SLOPE)) != GATE_SLOPE:
        fields.refuse_unsupported("swiglu_alpha", slope, str(GATE_SLOPE))
    style = LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation="quick_gelu",
        scale=shape.head_dim**-0.5,
        qkv_bias=has_biases,
        out_bias=has_biases,
        sinks=True,
    )
    sliding = [layer % 2 == 0 for layer in range(shape.num_layers)]
    window = fields.size_or_null("sliding_window", WINDOW)
    windows = layer_windows(fields, shape.num_layers, window, sliding)
    ends = Ends(tied=fields.flag("tie_word_embeddings", default=False))
    mixtures = (_mixture(fields, shape.intermediate_size),) * shape.num_layers
    return plan_with_one_rope(Family("gpt_oss", shape, style, ends, windows, mixtures), fields, context_len)


def _mixture(fields: ConfigFields, inner: int) -> Mixture:
    """Return the mixture of a layer.

    GGUF files have separate gates and up matrices, which the field ``fused_experts`` says.
    """
    count = fields.size("num_local_experts", at_most=MAX_EXPERTS)
    is_fused = fields.flag("fused_experts", default=True)
    is_quantized = "quantization_config" in fields
    return Mixture(
        count,
        inner,
        read_top_k(fields, count),
        FUSED if is_fused else SEPARATE,
        limit=fields.positive("swiglu_limit", LIMIT),
        offset=1.0,
        layout=StackLayout(alternate=is_fused, transposed=is_fused and not is_quantized),
    )
