"""The ops of a layer of compressed attention, whose distant tokens are kept as one vector for several."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import (
    Attention,
    Compress,
    HeadLinear,
    Indexer,
    KVGroup,
    Linear,
    MergeAttention,
    Norm,
    Op,
    Rope,
    RopeTable,
    TensorRef,
)
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.shape import Shape

CHOSEN = "chosen"
"""The value with the vectors that a row sees."""


class Compression(msgspec.Struct, frozen=True):
    """How layers compress the tokens before a row."""

    stride: int
    """Tokens for each vector."""
    chooses: bool
    """An indexer chooses the vectors that a row sees, and vectors overlap; else a row sees all of them."""

    @property
    def series(self) -> int:
        """How many vectors a token has a share in."""
        return 1 + self.chooses


class CompressedAttention(msgspec.Struct, frozen=True):
    """The sizes of compressed attention, in elements. Heads are those of the `Shape`; all share one key,
    which is the value too.
    """

    q_rank: int
    """Of the vector from which queries are made."""
    window: int
    """Tokens that are seen one by one."""
    groups: int
    """Groups of heads, whose outputs are projected apart."""
    group_rank: int
    """Elements that the output of a group is projected to."""
    index_heads: int
    index_dim: int
    """Elements of an index query and of an index key."""
    top_k: int
    """Most vectors that a row sees, if they are chosen."""
    layers: tuple[Compression | None, ...]
    """What each layer does; None: a row sees the window alone."""


class Ropes(msgspec.Struct, frozen=True):
    """The rotations of one kind of layer. The last elements of a head are rotated, so that the first angles
    of the tables are 0.
    """

    head: RopeTable
    """Of queries and keys."""
    back: RopeTable
    """Of the output: the opposite of ``head``, since a value is rotated as it is a key."""
    index: RopeTable
    """Of index queries and index keys."""


def compressed_groups(attention: CompressedAttention, head_dim: int) -> tuple[KVGroup, ...]:
    """Return the KV groups: that of the window, and for each compression what `_GroupIds` names."""
    found = [KVGroup(0, attention.window, 1, head_dim, tuple(range(len(attention.layers))), "latent")]
    for compression in _compressions(attention):
        layers = tuple(layer for layer, other in enumerate(attention.layers) if other == compression)
        dims = (head_dim, attention.index_dim) if compression.chooses else (head_dim,)
        span = compression.stride * compression.series
        for dim in dims:
            parts = KVGroup(len(found), span, 1, 2 * compression.series * dim, layers, "latent")
            vectors = KVGroup(len(found) + 1, None, 1, dim, layers, "latent", stride=compression.stride)
            found += [parts, vectors]
    return tuple(found)


def _compressions(attention: CompressedAttention) -> list[Compression]:
    return [one for one in dict.fromkeys(attention.layers) if one is not None]


class _GroupIds(msgspec.Struct, frozen=True):
    """The KV groups of a compression; index keys have groups only if vectors are chosen."""

    parts: int
    """What vectors are made of."""

    @classmethod
    def of(cls, attention: CompressedAttention, compression: Compression) -> _GroupIds:
        before = _compressions(attention)
        before = before[: before.index(compression)]
        return cls(1 + sum(4 if one.chooses else 2 for one in before))

    @property
    def vectors(self) -> int:
        return self.parts + 1

    @property
    def index_parts(self) -> int:
        return self.parts + 2

    @property
    def index_vectors(self) -> int:
        return self.parts + 3


def compressed_ops(
    attention: CompressedAttention, shape: Shape, style: LayerStyle, layer: int, ropes: Ropes
) -> tuple[Op, ...]:
    """Return the ops of the first part of a layer.

    Source: DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.3.
    """
    return tuple(_CompressedBuilder(attention, LayerBuilder(shape, style, layer), ropes).ops())


class _CompressedBuilder(msgspec.Struct, frozen=True):
    """Builds what is only in layers of compressed attention."""

    attention: CompressedAttention
    of: LayerBuilder
    ropes: Ropes

    def ops(self) -> Iterator[Op]:
        of, shape, attention = self.of, self.of.shape, self.attention
        compression = attention.layers[of.layer]
        yield from of.pre_norm(0)
        yield self._projections(compression)
        yield of.norm("q_low", "q_low", "attn.q_norm", attention.q_rank)
        yield of.norm("kv", "kv", "attn.kv_norm", shape.head_dim)
        yield of.linear("q_low", {"q": ("attn.wq_b", shape.q_width)}, attention.q_rank, bias=False)
        yield Norm("q", "q", None, of.style.eps, heads=shape.heads)
        yield Rope("q", "q", shape.heads, shape.head_dim, self.ropes.head, interleaved=True)
        yield Rope("kv", "kv", 1, shape.head_dim, self.ropes.head, interleaved=True)
        if compression is None:
            yield self._attention("kv", "y", 0)
        else:
            yield from self._compressed(compression, _GroupIds.of(attention, compression))
        yield Rope("y", "y", shape.heads, shape.head_dim, self.ropes.back, interleaved=True)
        yield HeadLinear("y", "y", self._group_matrices())
        inner = attention.groups * attention.group_rank
        yield of.linear("y", {"y": ("attn.wo_b", shape.hidden_size)}, inner, bias=False)
        yield of.residual()

    def _projections(self, compression: Compression | None) -> Linear:
        """Return the op that makes everything that is made from the input of the layer."""
        attention, head_dim = self.attention, self.of.shape.head_dim
        outs = {"q_low": ("attn.wq_a", attention.q_rank), "kv": ("attn.wkv", head_dim)}
        if compression is not None:
            width = compression.series * head_dim
            outs |= {"part": ("attn.compressor.wkv", width), "gate": ("attn.compressor.wgate", width)}
        if compression is not None and compression.chooses:
            width, module = compression.series * attention.index_dim, "attn.indexer.compressor"
            outs |= {
                "index_part": (f"{module}.wkv", width),
                "index_gate": (f"{module}.wgate", width),
                "head_weights": ("attn.indexer.weights_proj", attention.index_heads),
            }
        return self.of.linear(self.of.input, outs, self.of.shape.hidden_size, bias=False)

    def _compressed(self, compression: Compression, groups: _GroupIds) -> Iterator[Op]:
        """Yield the ops of attention to the window and to compressed tokens."""
        module, head_dim = "attn.compressor", self.of.shape.head_dim
        of_head = ("part", "gate", "vector", module, groups.parts, head_dim, self.ropes.head)
        yield from self._vectors(compression, *of_head)
        if compression.chooses:
            yield from self._choice(compression, groups)
        yield self._attention("kv", "near", 0, sums="near_sums")
        chosen = CHOSEN if compression.chooses else None
        yield self._attention("vector", "far", groups.vectors, sums="far_sums", chosen=chosen)
        yield MergeAttention("near", "near_sums", "far", "far_sums", "y", self.of.shape.heads)

    def _vectors(
        self,
        compression: Compression,
        part: str,
        gate: str,
        out: str,
        module: str,
        group: int,
        dim: int,
        rope: RopeTable,
    ) -> Iterator[Op]:
        """Yield the ops that make the vectors of a module."""
        of, stride = self.of, compression.stride
        bias = TensorRef(of.name(f"{module}.ape"), (stride * compression.series * dim,))
        yield Compress(part, gate, out, bias, group, of.layer, dim, stride, compression.chooses)
        yield of.norm(out, out, f"{module}.norm", dim)
        yield Rope(out, out, 1, dim, rope, interleaved=True, stride=stride)

    def _choice(self, compression: Compression, groups: _GroupIds) -> Iterator[Op]:
        """Yield the ops that choose vectors."""
        of, attention, module = self.of, self.attention, "attn.indexer"
        heads, dim, table = attention.index_heads, attention.index_dim, self.ropes.index
        of_index = ("index_part", "index_gate", "index_k", f"{module}.compressor", groups.index_parts, dim)
        yield from self._vectors(compression, *of_index, table)
        yield of.linear("q_low", {"index_q": (f"{module}.wq_b", heads * dim)}, attention.q_rank, bias=False)
        yield Rope("index_q", "index_q", heads, dim, table, interleaved=True)
        sizes = (groups.index_vectors, of.layer, heads, dim, attention.top_k)
        yield Indexer("index_q", "index_k", "head_weights", CHOSEN, *sizes)

    def _attention(
        self, kv: str, out: str, group: int, sums: str | None = None, chosen: str | None = None
    ) -> Attention:
        of, shape = self.of, self.of.shape
        sinks = TensorRef(of.name("attn.attn_sink"), (shape.heads,)) if group == 0 else None
        return Attention(
            "q",
            kv,
            kv,
            out,
            group,
            of.layer,
            shape.heads,
            1,
            shape.head_dim,
            of.style.scale,
            sinks=sinks,
            chosen=chosen,
            sums=sums,
        )

    def _group_matrices(self) -> TensorRef:
        attention, shape = self.attention, self.of.shape
        sizes = (attention.groups, attention.group_rank, shape.q_width // attention.groups)
        return TensorRef(self.of.name("attn.wo_a.weight"), sizes, is_stack=True)
