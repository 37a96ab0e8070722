"""DeepSeek-V4: compressed attention, hyper-connections, and experts that a table has for each token."""

from __future__ import annotations

import msgspec

from llmd.api import BLOCK_LEN, LeftOut, ModelPlan, Part, RopeTable
from llmd.api.expert_ops import Score
from llmd.api.plugins import Config
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.compressed import (
    CompressedAttention,
    Compression,
    Ropes,
    compressed_groups,
    compressed_ops,
)
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Ends, embed_part, head_part
from llmd.builtin.architectures.layer import LayerStyle, Modules
from llmd.builtin.architectures.mixture import (
    MAX_EXPERTS,
    ExpertNames,
    Mixture,
    SharedExpert,
    mixture_ops,
    read_top_k,
)
from llmd.builtin.architectures.rope import RopeConfig, read_rope, rope_config, rope_table
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, Shape, read_shape
from llmd.builtin.architectures.streams import Streams

WINDOWED, CHOOSING, SEEING_ALL = TYPES = (
    "sliding_attention",
    "compressed_sparse_attention",
    "heavily_compressed_attention",
)
DEFAULT_STRIDES = {CHOOSING: 4, SEEING_ALL: 128}
STRIDE_FIELDS = {CHOOSING: "compress_rate_csa", SEEING_ALL: "compress_rate_hca"}
BY_TOKEN, BY_SCORE = MIXTURE_TYPES = ("hash_moe", "moe")
DEFAULT_ROTATED_SHARE = 64 / 512
EXPERTS = "ffn.experts.*"
SCORES: dict[str, Score] = {"sqrtsoftplus": "sqrt_softplus", "softmax": "softmax", "sigmoid": "sigmoid"}
DEFAULTS = {"rms_norm_eps": 1e-6, "max_position_embeddings": 1 << 20, "swiglu_limit": 10.0}
VISION = LeftOut("vision", ("vision.", "aligner.", "image_", "ffn.gate.bias_vl", "exp_probs_b_vl."))
"""Tensors of models that also see, among them the routing of tokens of images."""


class _RopePair(msgspec.Struct, frozen=True):
    """The RoPE of layers that see a window alone, and that of layers that compress."""

    plain: RopeConfig
    compressed: RopeConfig
    stated_factor: bool
    """The configuration states what multiplies rotated elements; else nothing does."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: DeepSeek-AI 2026, "DeepSeek-V4 Technical Report"."""
    inner = config.get("moe_intermediate_size")
    fields = ConfigFields({**DEFAULTS, "intermediate_size": inner, **config})
    shape = msgspec.structs.replace(read_shape(fields), kv_heads=1)
    eps = fields.positive("rms_norm_eps")
    streams = Streams(
        fields.size("hc_mult", 4),
        eps,
        fields.positive("hc_eps", 1e-6),
        fields.size("hc_sinkhorn_iters", 20),
    )
    style = LayerStyle(
        eps=eps,
        activation=read_activation(fields),
        scale=shape.head_dim**-0.5,
        limit=fields.positive("swiglu_limit"),
        pre_norms=("attn_norm", "ffn_norm"),
        modules=Modules("layers", "attn", "ffn"),
        streams=streams,
    )
    ends = Ends(
        tied=fields.flag("tie_word_embeddings", default=False),
        embedding="embed.weight",
        norm="norm.weight",
        head="head.weight",
        streams=streams,
    )
    pair = _read_ropes(fields)
    context_len = context_len or pair.compressed.max_len
    attention = _read_attention(fields, shape)
    parts = [
        embed_part(shape, ends),
        *_layer_parts(fields, attention, shape, style, _tables(fields, attention, shape, pair, context_len)),
        head_part(shape, style, ends),
    ]
    return ModelPlan(
        architecture="deepseek_v4",
        hidden_size=streams.count * shape.hidden_size,
        vocab_size=shape.vocab_size,
        context_len=context_len,
        max_context_len=pair.compressed.max_context_len,
        groups=compressed_groups(attention, shape.head_dim),
        parts=tuple(parts),
        left_out=(LeftOut("a draft head", ("mtp.", f"blk.{shape.num_layers}."), is_draft=True), VISION),
    )


def _layer_parts(
    fields: ConfigFields,
    attention: CompressedAttention,
    shape: Shape,
    style: LayerStyle,
    tables: tuple[Ropes, Ropes],
) -> list[Part]:
    parts = []
    for layer, (compression, by_token) in enumerate(
        zip(attention.layers, _routed_by_token(fields, shape.num_layers), strict=True)
    ):
        ropes = tables[compression is not None]
        ops = compressed_ops(attention, shape, style, layer, ropes)
        parts.append(Part(f"layer {layer} mixer", "mixer", layer, ops))
        mixture = _mixture(fields, by_token=by_token)
        parts.append(Part(f"layer {layer} ffn", "ffn", layer, mixture_ops(mixture, shape, style, layer)))
    return parts


def _read_attention(fields: ConfigFields, shape: Shape) -> CompressedAttention:
    groups = fields.size("o_groups", 8)
    if shape.heads % groups:
        fields.contradict(f"{shape.heads} heads cannot be in o_groups {groups}")
    return CompressedAttention(
        q_rank=fields.size("q_lora_rank"),
        window=fields.size("sliding_window", 128),
        groups=groups,
        group_rank=fields.size("o_lora_rank"),
        index_heads=fields.size("index_n_heads", 64),
        index_dim=fields.size("index_head_dim", 128, at_most=MAX_HEAD_DIM),
        top_k=fields.size("index_topk", 512),
        layers=tuple(_compression(fields, name) for name in _layer_types(fields, shape.num_layers)),
    )


def _layer_types(fields: ConfigFields, num_layers: int) -> list[str]:
    """Return the type of each layer: stated, by the tokens that it compresses, or as in DeepSeek-V4-Pro."""
    if "layer_types" in fields:
        return fields.names("layer_types", num_layers, TYPES)
    if "compress_ratios" in fields:
        by_stride = {0: WINDOWED} | {stride: name for name, stride in DEFAULT_STRIDES.items()}
        strides = fields.indices("compress_ratios", 1 << 20)
        if len(strides) < num_layers:
            fields.contradict(f"compress_ratios has {len(strides)} entries for {num_layers} layers")
        unknown = [stride for stride in strides if stride not in by_stride]
        if unknown:
            fields.refuse_unsupported("compress_ratios", unknown[0], ", ".join(map(str, by_stride)))
        return [by_stride[stride] for stride in strides[:num_layers]]
    return [CHOOSING if layer > 1 and layer % 2 else SEEING_ALL for layer in range(num_layers)]


def _compression(fields: ConfigFields, layer_type: str) -> Compression | None:
    if layer_type == WINDOWED:
        return None
    default = fields.size(STRIDE_FIELDS[layer_type], DEFAULT_STRIDES[layer_type])
    stride = fields.inside("compress_rates").size(layer_type, default)
    if BLOCK_LEN % stride and stride % BLOCK_LEN:
        supported = f"divisors and multiples of {BLOCK_LEN}"
        fields.refuse_unsupported(f"compress_rates.{layer_type}", stride, supported)
    return Compression(stride, chooses=layer_type == CHOOSING)


def _routed_by_token(fields: ConfigFields, num_layers: int) -> list[bool]:
    """Return for each layer whether a table has the experts of each token."""
    if "mlp_layer_types" in fields:
        return [name == BY_TOKEN for name in fields.names("mlp_layer_types", num_layers, MIXTURE_TYPES)]
    return [layer < fields.count("num_hash_layers", 3) for layer in range(num_layers)]


def _mixture(fields: ConfigFields, *, by_token: bool) -> Mixture:
    count = fields.size("n_routed_experts", at_most=MAX_EXPERTS)
    inner = fields.size("moe_intermediate_size")
    names = ExpertNames(
        "ffn.gate.weight",
        f"{EXPERTS}.w1.weight",
        f"{EXPERTS}.w3.weight",
        f"{EXPERTS}.w2.weight",
        correction=None if by_token else "ffn.gate.bias",
        given="ffn.gate.tid2eid" if by_token else None,
    )
    gate, up, down = (f"ffn.shared_experts.{name}" for name in ("w1", "w3", "w2"))
    return Mixture(
        count,
        inner,
        read_top_k(fields, count),
        names,
        fields.choice("scoring_func", SCORES, "sqrtsoftplus"),
        normalized=fields.flag("norm_topk_prob", default=True),
        factor=fields.positive("routed_scaling_factor", 1.5),
        limit=fields.positive("swiglu_limit"),
        shared=SharedExpert(inner * fields.size("n_shared_experts", 1), (gate, up), down),
    )


def _read_ropes(fields: ConfigFields) -> _RopePair:
    """Read both RoPEs: stated apart, or with one scaling, which only layers that compress have."""
    stated = fields.inside("rope_parameters")
    if "main" in stated and "compress" in stated:
        plain, compressed = (read_rope(fields, stated.inside(name)) for name in ("main", "compress"))
        return _RopePair(plain, compressed, stated_factor=True)
    scaling = fields.inside("rope_scaling") if "rope_scaling" in fields else stated
    compressed = rope_config(fields, scaling, fields.positive("compress_rope_theta", 160000.0))
    theta = fields.positive("rope_theta", 10000.0)
    plain = msgspec.structs.replace(compressed, scaling=ConfigFields({}), type="default", theta=theta)
    return _RopePair(plain, compressed, "attention_factor" in scaling)


def _tables(
    fields: ConfigFields, attention: CompressedAttention, shape: Shape, pair: _RopePair, context_len: int
) -> tuple[Ropes, Ropes]:
    """Return the tables of layers that see a window alone, and those of layers that compress."""
    share = fields.positive("partial_rotary_factor", DEFAULT_ROTATED_SHARE)
    rotated = fields.size("qk_rope_head_dim", int(shape.head_dim * share))
    if rotated > min(shape.head_dim, attention.index_dim):
        fields.contradict(f"{rotated} elements cannot be rotated in heads of {attention.index_dim}")
    plain, compressed = (
        rope_table(msgspec.structs.replace(rope, partial_factor=1.0), rotated, context_len)
        for rope in (pair.plain, pair.compressed)
    )
    if not pair.stated_factor:
        compressed = RopeTable(compressed.inv_freq)
    return _at_ends(plain, attention, shape), _at_ends(compressed, attention, shape)


def _at_ends(table: RopeTable, attention: CompressedAttention, shape: Shape) -> Ropes:
    head = _padded(table, shape.head_dim)
    back = RopeTable(tuple(-freq for freq in head.inv_freq), head.factor)
    return Ropes(head, back, _padded(table, attention.index_dim))


def _padded(table: RopeTable, dim: int) -> RopeTable:
    """Return the table for the last elements of heads of ``dim`` elements; the others do not turn."""
    return RopeTable((0.0,) * (dim // 2 - len(table.inv_freq)) + table.inv_freq, table.factor)
