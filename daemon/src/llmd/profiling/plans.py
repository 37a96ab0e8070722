"""Models whose steps show one cost of a device each."""

from __future__ import annotations

from llmd.api.ops import Add, Attention, Embed, Glu, Head, Linear, Norm
from llmd.api.plan import HIDDEN, KVGroup, ModelPlan, Part
from llmd.api.tensors import TensorRef

VOCAB = 64
"""Few tokens, so that the head takes no time."""
HEAD_DIM = 128


def feed_forward_plan(hidden: int, ffn: int, layers: int) -> ModelPlan:
    """Return a model that only multiplies by matrices: three of ``ffn * hidden`` elements in each layer."""
    return _plan(hidden, tuple(_feed_forward(hidden, ffn, layer) for layer in range(layers)), ())


def attention_plan(hidden: int, heads: int, kv_heads: int, layers: int, context_len: int) -> ModelPlan:
    """Return a model of attention with heads of `HEAD_DIM` elements."""
    group = KVGroup(0, None, kv_heads, HEAD_DIM, tuple(range(layers)))
    parts = tuple(_attention(hidden, heads, kv_heads, layer) for layer in range(layers))
    return _plan(hidden, parts, (group,), context_len)


def _plan(
    hidden: int, layers: tuple[Part, ...], groups: tuple[KVGroup, ...], context_len: int = 4096
) -> ModelPlan:
    table = TensorRef("table", (VOCAB, hidden))
    head = (Norm(HIDDEN, "x", TensorRef("norm", (hidden,)), eps=1e-5), Head("x", table))
    return ModelPlan(
        architecture="measured",
        hidden_size=hidden,
        vocab_size=VOCAB,
        context_len=context_len,
        max_context_len=context_len,
        groups=groups,
        parts=(
            Part("embed", "embed", None, (Embed(HIDDEN, table),)),
            *layers,
            Part("head", "head", None, head),
        ),
    )


def _feed_forward(hidden: int, ffn: int, layer: int) -> Part:
    at = f"{layer}."
    ops = (
        Norm(HIDDEN, "x", TensorRef(at + "norm", (hidden,)), eps=1e-5),
        Linear("x", ("gate", "up"), (TensorRef(at + "gate", (ffn, hidden)), TensorRef(at + "up", (ffn, hidden))), (None, None)),
        Glu("gate", "up", "gated", "silu"),
        Linear("gated", ("out",), (TensorRef(at + "down", (hidden, ffn)),), (None,)),
        Add(HIDDEN, "out", HIDDEN),
    )  # fmt: skip
    return Part(f"layer {layer} ffn", "ffn", layer, ops)


def _attention(hidden: int, heads: int, kv_heads: int, layer: int) -> Part:
    at = f"{layer}."
    widths = [heads * HEAD_DIM, kv_heads * HEAD_DIM, kv_heads * HEAD_DIM]
    weights = tuple(TensorRef(at + name, (width, hidden)) for name, width in zip("qkv", widths, strict=True))
    ops = (
        Norm(HIDDEN, "x", TensorRef(at + "norm", (hidden,)), eps=1e-5),
        Linear("x", ("q", "k", "v"), weights, (None, None, None)),
        Attention(
            "q", "k", "v", "mixed", group=0, layer=layer, heads=heads, kv_heads=kv_heads, head_dim=HEAD_DIM,
            scale=HEAD_DIM**-0.5,
        ),
        Linear("mixed", ("out",), (TensorRef(at + "o", (hidden, widths[0])),), (None,)),
        Add(HIDDEN, "out", HIDDEN),
    )  # fmt: skip
    return Part(f"layer {layer} mixer", "mixer", layer, ops)
