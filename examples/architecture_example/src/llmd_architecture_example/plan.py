"""The model as ops on named values. Tensors have the names that the family's checkpoints use."""

from __future__ import annotations

from llmd.api import (
    HIDDEN,
    Add,
    Attention,
    Embed,
    Glu,
    Head,
    KVGroup,
    Linear,
    ModelPlan,
    Norm,
    Part,
    Rope,
    RopeTable,
    TensorRef,
)
from llmd.api.plugins import Config
from llmd_architecture_example.config import Sizes, read_sizes


def plan_model(config: Config, context_len: int | None) -> ModelPlan:
    """Plan a decoder: pre-norm, grouped-query attention with RoPE, SwiGLU."""
    sizes = read_sizes(config)
    layers = range(sizes.layers)
    return ModelPlan(
        architecture="example",
        hidden_size=sizes.hidden,
        vocab_size=sizes.vocab,
        context_len=context_len or sizes.context_len,
        max_context_len=sizes.context_len,
        groups=(KVGroup(0, None, sizes.kv_heads, sizes.head_dim, tuple(layers)),),
        parts=(_embed(sizes), *(part for layer in layers for part in _layer(sizes, layer)), _head(sizes)),
    )


def _embed(sizes: Sizes) -> Part:
    table = TensorRef("model.embed_tokens.weight", (sizes.vocab, sizes.hidden))
    return Part("embedding", "embed", None, (Embed(HIDDEN, table),))


def _head(sizes: Sizes) -> Part:
    norm = _norm("model.norm.weight", sizes)
    weight = TensorRef("lm_head.weight", (sizes.vocab, sizes.hidden))
    return Part("head", "head", None, (norm, Head("x", weight)))


def _layer(sizes: Sizes, layer: int) -> tuple[Part, Part]:
    return (
        Part(f"layer {layer} mixer", "mixer", layer, _attention(sizes, layer)),
        Part(f"layer {layer} ffn", "ffn", layer, _feed_forward(sizes, layer)),
    )


def _attention(sizes: Sizes, layer: int) -> tuple[Norm | Linear | Rope | Attention | Add, ...]:
    at, width, kv_width = _prefix(layer), sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    rows = {"q": width, "k": kv_width, "v": kv_width}
    weights = tuple(
        TensorRef(f"{at}self_attn.{name}_proj.weight", (count, sizes.hidden)) for name, count in rows.items()
    )
    half = sizes.head_dim // 2
    rope = RopeTable(tuple(sizes.theta ** (-index / half) for index in range(half)))
    return (
        _norm(f"{at}input_layernorm.weight", sizes),
        Linear("x", ("q", "k", "v"), weights, (None, None, None)),
        Rope("q", "q_rotated", sizes.heads, sizes.head_dim, rope),
        Rope("k", "k_rotated", sizes.kv_heads, sizes.head_dim, rope),
        Attention(
            "q_rotated",
            "k_rotated",
            "v",
            "mixed",
            group=0,
            layer=layer,
            heads=sizes.heads,
            kv_heads=sizes.kv_heads,
            head_dim=sizes.head_dim,
            scale=sizes.head_dim**-0.5,
        ),
        Linear("mixed", ("o",), (TensorRef(f"{at}self_attn.o_proj.weight", (sizes.hidden, width)),), (None,)),
        Add(HIDDEN, "o", HIDDEN),
    )


def _feed_forward(sizes: Sizes, layer: int) -> tuple[Norm | Linear | Glu | Add, ...]:
    at = f"{_prefix(layer)}mlp."
    gate_up = tuple(
        TensorRef(f"{at}{name}_proj.weight", (sizes.ffn, sizes.hidden)) for name in ("gate", "up")
    )
    down = TensorRef(f"{at}down_proj.weight", (sizes.hidden, sizes.ffn))
    return (
        _norm(f"{_prefix(layer)}post_attention_layernorm.weight", sizes),
        Linear("x", ("gate", "up"), gate_up, (None, None)),
        Glu("gate", "up", "gated", "silu"),
        Linear("gated", ("down",), (down,), (None,)),
        Add(HIDDEN, "down", HIDDEN),
    )


def _norm(name: str, sizes: Sizes) -> Norm:
    return Norm(HIDDEN, "x", TensorRef(name, (sizes.hidden,)), sizes.eps)


def _prefix(layer: int) -> str:
    return f"model.layers.{layer}."
