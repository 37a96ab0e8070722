"""The ops of a layer of multi-head latent attention."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import Attention, HeadLinear, Join, KVGroup, Linear, Norm, Op, Rope, RopeTable, TensorRef
from llmd.builtin.architectures import rope_scaling
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.indexer import CHOSEN, Indexing, index_group, indexer_ops
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.rope import RopeConfig
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, Shape

LATENT_EPS = 1e-6
"""Of the norms of latent vectors, whatever that of other norms is."""


class LatentAttention(msgspec.Struct, frozen=True):
    """The sizes of latent attention, in elements. Heads are those of the `Shape`, `Shape.head_dim` are the
    rotated elements of a query or key.
    """

    q_rank: int | None
    """Of the vector from which queries are made; None: they are made from the hidden state."""
    rank: int
    """Of the vector from which keys and values are made."""
    plain: int
    """Elements of a query or key that are not rotated."""
    value: int
    """Elements of a value."""
    bias: bool = False
    """The matrices that make both vectors, and the last one, have biases."""
    split: bool = False
    """The matrices of keys, transposed, and of values are tensors of their own; else one tensor has the rows
    of both for each head in turn."""
    indexing: Indexing | None = None
    """Attention is limited to the positions that indexers choose; None: it sees all before a row."""


def read_latent(fields: ConfigFields, indexing: Indexing | None = None) -> LatentAttention:
    """Read the sizes.

    Raises:
        CheckpointError: a size is missing or invalid.
    """
    return LatentAttention(
        fields.size("q_lora_rank") if "q_lora_rank" in fields else None,
        fields.size("kv_lora_rank", at_most=MAX_HEAD_DIM),
        fields.size("qk_nope_head_dim", at_most=MAX_HEAD_DIM),
        fields.size("v_head_dim", at_most=MAX_HEAD_DIM),
        fields.flag("attention_bias", default=False),
        fields.flag("split_kv_b", default=False),
        indexing,
    )


def latent_scale(latent: LatentAttention, rotated: int, rope: RopeConfig) -> float:
    """Return what multiplies scores: in a stretched context, more than ``1 / sqrt(elements of a key)``.

    Source: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", section
    3.4, with the factor of DeepSeek-V2.
    """
    scale: float = (latent.plain + rotated) ** -0.5
    if rope.type == "default" or "mscale_all_dim" not in rope.scaling:
        return scale
    above = rope_scaling.yarn_attention_factor(
        rope.scaling.positive("factor"), rope.scaling.positive("mscale_all_dim")
    )
    return scale * above**2


def latent_groups(
    latent: LatentAttention, shape: Shape, index: int, layers: tuple[int, ...]
) -> Iterator[KVGroup]:
    """Yield the KV groups of layers with latent attention: of latent vectors, and then of index keys."""
    width = latent.rank + shape.head_dim
    yield KVGroup(index, None, 1, width, layers, kind="latent", value_dim=latent.rank)
    if latent.indexing is not None:
        yield index_group(latent.indexing, index + 1)


def latent_ops(
    latent: LatentAttention, shape: Shape, style: LayerStyle, layer: int, group: int, rope: RopeTable | None
) -> tuple[Op, ...]:
    """Return the ops of the first part of a layer, whose latent vectors are in the KV group ``group``, and
    index keys in the one after it.

    Without ``rope``, attention has no positions, and nothing is rotated.

    Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1 and appendix C.
    """
    build = _LatentBuilder(latent, LayerBuilder(shape, style, layer))
    heads, width = shape.heads, latent.rank + shape.head_dim
    return (
        *build.of.pre_norm(0),
        *build.projections(),
        *(build.rotations(rope) if rope is not None else ()),
        *build.choice(group + 1, rope),
        HeadLinear("q", "q", build.key_matrices()),
        Join("q", "q_rope", "q", heads),
        Join("latent", "k_rope", "k", 1),
        Attention(
            "q",
            "k",
            "k",
            "y",
            group,
            layer,
            heads,
            1,
            width,
            style.scale,
            value_dim=latent.rank,
            chosen=None if latent.indexing is None else CHOSEN,
        ),
        HeadLinear("y", "y", build.value_matrices()),
        build.of.linear(
            "y", {"y": ("self_attn.o_proj", shape.hidden_size)}, heads * latent.value, bias=latent.bias
        ),
        *build.of.post_norm(0),
        build.of.residual(),
    )


class _LatentBuilder(msgspec.Struct, frozen=True):
    """Builds what is only in layers of latent attention."""

    latent: LatentAttention
    of: LayerBuilder

    def projections(self) -> Iterator[Op]:
        """Yield the ops that make both parts of queries, and the latent vector with its rotated part."""
        latent, of = self.latent, self.of
        enter = {"latent": latent.rank, "k_rope": of.shape.head_dim}
        kv = self._parts("self_attn.kv_a_proj_with_mqa", enter, of.shape.hidden_size, bias=latent.bias)
        queries = {"q": latent.plain, "q_rope": of.shape.head_dim}
        if latent.q_rank is None:
            q = self._parts("self_attn.q_proj", queries, of.shape.hidden_size, of.shape.heads)
            yield _linear(of.input, q | kv)
        else:
            low = TensorRef(of.name("self_attn.q_a_proj.weight"), (latent.q_rank, of.shape.hidden_size))
            bias = TensorRef(of.name("self_attn.q_a_proj.bias"), (latent.q_rank,)) if latent.bias else None
            yield _linear(of.input, {"q_low": (low, bias)} | kv)
            yield self._norm("q_low", "self_attn.q_a_layernorm", latent.q_rank)
            yield _linear("q_low", self._parts("self_attn.q_b_proj", queries, latent.q_rank, of.shape.heads))
        yield self._norm("latent", "self_attn.kv_a_layernorm", latent.rank)

    def rotations(self, rope: RopeTable) -> Iterator[Op]:
        """Yield the ops that rotate parts of queries and of the key."""
        dim, interleaved = self.of.shape.head_dim, self.of.style.rope_interleave
        yield Rope("q_rope", "q_rope", self.of.shape.heads, dim, rope, interleaved)
        yield Rope("k_rope", "k_rope", 1, dim, rope, interleaved)

    def choice(self, group: int, rope: RopeTable | None) -> Iterator[Op]:
        """Yield the ops that choose positions, if the layer has an indexer."""
        indexing = self.latent.indexing
        if indexing is not None and rope is not None and self.of.layer in indexing.layers:
            yield from indexer_ops(indexing, self.of, group, rope)

    def key_matrices(self) -> TensorRef:
        """Return the matrices that turn a head's queries for keys into those for the latent vector."""
        latent, heads = self.latent, self.of.shape.heads
        if latent.split:
            name = self.of.name("self_attn.k_b_proj.weight")
            return TensorRef(name, (heads, latent.rank, latent.plain), is_stack=True)
        shape = (heads, latent.plain + latent.value, latent.rank)
        columns = (0, latent.plain)
        return TensorRef(self._fused, shape, is_stack=True, is_transposed=True, columns=columns)

    def value_matrices(self) -> TensorRef:
        """Return the matrices that make a head's value from the latent vector."""
        latent, heads = self.latent, self.of.shape.heads
        if latent.split:
            name = self.of.name("self_attn.v_b_proj.weight")
            return TensorRef(name, (heads, latent.value, latent.rank), is_stack=True)
        rows = (latent.plain, latent.plain + latent.value)
        return TensorRef(self._fused, (heads, rows[1], latent.rank), rows, is_stack=True)

    @property
    def _fused(self) -> str:
        return self.of.name("self_attn.kv_b_proj.weight")

    def _parts(
        self, module: str, widths: dict[str, int], inputs: int, runs: int = 1, *, bias: bool = False
    ) -> dict[str, tuple[TensorRef, TensorRef | None]]:
        """Return weight and bias of each part of a tensor: see `LayerBuilder.parts`."""
        weights = self.of.parts(module, widths, runs)
        return {
            out: (
                msgspec.structs.replace(ref, shape=(ref.shape[0], inputs)),
                TensorRef(self.of.name(f"{module}.bias"), ref.shape[:1], ref.rows, ref.period)
                if bias
                else None,
            )
            for out, ref in weights.items()
        }

    def _norm(self, value: str, module: str, width: int) -> Op:
        return Norm(value, value, TensorRef(self.of.name(f"{module}.weight"), (width,)), LATENT_EPS)


def _linear(x: str, outs: dict[str, tuple[TensorRef, TensorRef | None]]) -> Linear:
    weights, biases = zip(*outs.values(), strict=True)
    return Linear(x, tuple(outs), weights, biases)
