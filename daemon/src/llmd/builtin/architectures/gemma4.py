"""Gemma 4 text: two kinds of attention with heads of their own sizes, and in some models experts beside the
feed-forward network, inputs of single layers, or layers that read the keys and values of earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from llmd.api import HIDDEN, Embed, KVGroup, LeftOut, ModelPlan, Part, RopeTable
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, embed_part, embedding, head_part
from llmd.builtin.architectures.gemma import DEFAULT_HEAD_DIM, gemma_ends
from llmd.builtin.architectures.gemma4_layer import (
    EXPERTS,
    FUSED_EXPERTS,
    Layer,
    attention_ops,
    feed_forward_ops,
)
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mixture import MAX_EXPERTS, Mixture, read_top_k
from llmd.builtin.architectures.per_layer_input import PerLayerInput
from llmd.builtin.architectures.rope import RopeConfig, read_rope, rope_config, rope_table
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, Shape, read_shape
from llmd.builtin.architectures.windows import Windows, layer_windows, read_window

FULL_EVERY = 6
DEFAULT_GLOBAL_HEAD_DIM = 512
DEFAULT_INPUT_WIDTH = 256
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 262144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131072,
    "sliding_window": 512,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "full_attention": {
            "rope_type": "proportional",
            "partial_rotary_factor": 0.25,
            "rope_theta": 1000000.0,
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    },
}
"""Values of fields that transformers omits from ``text_config`` if they equal them."""
UNIFIED: Mapping[str, Any] = {
    "max_position_embeddings": 262144,
    "sliding_window": 1024,
    "hidden_size_per_layer_input": 0,
}
"""The same for ``gemma4_unified``, where they differ."""
SENSES = LeftOut(
    "vision and audio", ("vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.", "vision_embedder.")
)


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Gemma Team 2026, "Gemma 4"."""
    fields = _fields(config)
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    full, local = _ropes(fields)
    context_len = context_len or full.max_len
    layers = _layers(fields, shape, (full, local), context_len)
    groups, style = _groups(layers), _style(fields)
    ends = gemma_ends(fields, shape, softcap=None)
    mixture, inputs = _mixture(fields), _inputs(fields, shape, ends)
    parts = [embed_part(shape, ends)]
    for layer in layers:
        group = next(group.id for group in groups if layer.keys_of in group.layers)
        mixer, ffn = attention_ops(layer, style, group), feed_forward_ops(layer, style, mixture, inputs)
        parts.append(Part(f"layer {layer.number} mixer", "mixer", layer.number, mixer))
        parts.append(Part(f"layer {layer.number} ffn", "ffn", layer.number, ffn))
    parts.append(head_part(shape, style, ends))
    return ModelPlan(
        architecture="gemma4",
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        context_len=context_len,
        max_context_len=full.max_context_len,
        groups=groups,
        parts=tuple(parts),
        left_out=(SENSES, *_unused_keys(layers)),
    )


def _fields(config: Config) -> ConfigFields:
    """Return the fields of the text model, with the values that transformers omits."""
    values = config["text_config"] if len(ConfigFields(config).inside("text_config")) else config
    stated = {name: value for name, value in values.items() if value is not None}
    is_unified = "unified" in ConfigFields(values).text("model_type", "")
    return ConfigFields({**DEFAULTS, **(UNIFIED if is_unified else {}), **stated})


def _style(fields: ConfigFields) -> LayerStyle:
    seen = fields.text("use_bidirectional_attention", "vision")
    if seen != "vision":  # only images see what comes after them, and llmd has none
        fields.refuse_unsupported("use_bidirectional_attention", seen, "null, vision")
    bias = fields.flag("attention_bias", default=False)
    return LayerStyle(
        eps=fields.positive("rms_norm_eps"),
        activation=read_activation(fields, "hidden_activation", "gelu_pytorch_tanh"),
        scale=1.0,
        pre_norms=("input_layernorm", "pre_feedforward_layernorm"),
        post_norms=("post_attention_layernorm", "post_feedforward_layernorm"),
        qkv_bias=bias,
        out_bias=bias,
    )


def _ropes(fields: ConfigFields) -> tuple[RopeConfig, RopeConfig]:
    """Return the RoPE of full and of windowed layers. A ``rope_scaling`` is that of full ones."""
    stated = fields.inside("rope_parameters")
    full, local = stated.inside("full_attention"), stated.inside("sliding_attention")
    return read_rope(fields, full), rope_config(fields, local, local.positive("rope_theta"))


def _layers(
    fields: ConfigFields, shape: Shape, ropes: tuple[RopeConfig, RopeConfig], context_len: int
) -> list[Layer]:
    """Return every layer; ``ropes`` are those of full and of windowed layers."""
    windows = _windows(fields, shape.num_layers)
    sources = _sources(fields, windows)
    wide = fields.flag("use_double_wide_mlp", default=False)
    value_is_key = fields.flag("attention_k_eq_v", default=False)
    tables: dict[tuple[bool, int], RopeTable] = {}
    layers = []
    for number, (window, source) in enumerate(zip(windows, sources, strict=True)):
        is_full = window is None
        mine = _layer_shape(fields, shape, number, is_full=is_full, widened=wide and source != number)
        kind = is_full, mine.head_dim
        if kind not in tables:
            tables[kind] = rope_table(ropes[0 if is_full else 1], mine.head_dim, context_len)
        layers.append(Layer(number, mine, window, tables[kind], source, value_is_key and is_full))
    return layers


def _windows(fields: ConfigFields, num_layers: int) -> Windows:
    """Return the window of each layer; the last layer never has one."""
    sliding = [(layer + 1) % FULL_EVERY != 0 for layer in range(num_layers)]
    return (*layer_windows(fields, num_layers, read_window(fields), sliding)[:-1], None)


def _sources(fields: ConfigFields, windows: Windows) -> list[int]:
    """Return the layer whose keys each layer reads. The last ``num_kv_shared_layers`` read those of the last
    layer before them with the same window.

    Raises:
        CheckpointError: there is no such layer.
    """
    first = len(windows) - fields.count("num_kv_shared_layers", 0)
    sources = list(range(len(windows)))
    for number in range(max(first, 0), len(windows)):
        before = [layer for layer in range(first) if windows[layer] == windows[number]]
        if not before:
            fields.contradict(
                f"num_kv_shared_layers is {len(windows) - first}, but no layer before these is like layer {number}"
            )
        sources[number] = before[-1]
    return sources


def _layer_shape(fields: ConfigFields, shape: Shape, number: int, *, is_full: bool, widened: bool) -> Shape:
    """Return the sizes of a layer: those that ``per_layer_config`` states, else, in layers of full attention,
    ``global_head_dim`` and, if values are keys, ``num_global_key_value_heads``.
    """
    head_dim, kv_heads = shape.head_dim, shape.kv_heads
    if "per_layer_config" in fields:
        own = fields.inside("per_layer_config").inside(str(number))
        head_dim = own.size("head_dim", head_dim, at_most=MAX_HEAD_DIM)
        kv_heads = own.size("num_key_value_heads", kv_heads)
    elif is_full:
        head_dim = fields.size("global_head_dim", DEFAULT_GLOBAL_HEAD_DIM, at_most=MAX_HEAD_DIM)
        if fields.flag("attention_k_eq_v", default=False):
            kv_heads = fields.size("num_global_key_value_heads", kv_heads)
    if shape.heads % kv_heads:
        fields.contradict(f"layer {number} has {kv_heads} key-value heads for {shape.heads} query heads")
    inner = shape.intermediate_size * (2 if widened else 1)
    return msgspec.structs.replace(shape, head_dim=head_dim, kv_heads=kv_heads, intermediate_size=inner)


def _groups(layers: Sequence[Layer]) -> tuple[KVGroup, ...]:
    """Return a group for each window and size of heads, with the layers that have keys of their own."""
    kinds: dict[tuple[int | None, int, int], list[int]] = {}
    for layer in layers:
        if not layer.shares:
            kind = layer.window, layer.shape.kv_heads, layer.shape.head_dim
            kinds.setdefault(kind, []).append(layer.number)
    return tuple(KVGroup(index, *kind, tuple(some)) for index, (kind, some) in enumerate(kinds.items()))


def _mixture(fields: ConfigFields) -> Mixture | None:
    if not fields.flag("enable_moe_block", default=False):
        return None
    count = fields.size("num_experts", at_most=MAX_EXPERTS)
    top_k = read_top_k(fields, count, "top_k_experts")
    scale = fields.size("hidden_size") ** -0.5
    names = FUSED_EXPERTS if fields.flag("fused_experts", default=True) else EXPERTS
    return Mixture(count, fields.size("moe_intermediate_size"), top_k, names, scale=scale)


def _inputs(fields: ConfigFields, shape: Shape, ends: Ends) -> PerLayerInput | None:
    width = fields.count("hidden_size_per_layer_input", DEFAULT_INPUT_WIDTH)
    if not width:
        return None
    rows = fields.size("vocab_size_per_layer_input", shape.vocab_size)
    if rows < shape.vocab_size:
        fields.contradict(f"vocab_size_per_layer_input is {rows}, below vocab_size {shape.vocab_size}")
    embed = Embed(HIDDEN, embedding(shape, ends), ends.embed_scale)
    return PerLayerInput(width, rows, shape.num_layers, embed)


def _unused_keys(layers: Sequence[Layer]) -> Iterator[LeftOut]:
    """Yield what checkpoints have for layers that read the keys of others."""
    marks = [
        f"{prefix}{name}."
        for layer in layers
        if layer.shares
        for prefix, names in (
            (f"layers.{layer.number}.self_attn.", ("k_proj", "v_proj", "k_norm")),
            (f"blk.{layer.number}.", ("attn_k", "attn_v", "attn_k_norm")),  # in GGUF files
        )
        for name in names
    ]
    if marks:
        yield LeftOut("keys of layers", tuple(marks), why="these layers read the keys and values of others")
