"""The op set of model programs. ``docs/ops.md`` gives the mathematics of each op.

A value is a float32 matrix ``[rows, width]`` with one row for each token of the step. Ops name the
values they read and write; a part is a straight-line list of them. Nothing here computes.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import msgspec

from llmd.api.tensors import TensorRef

Activation = Literal["silu", "gelu", "gelu_tanh", "relu2", "relu", "tanh"]


class RopeTable(msgspec.Struct, frozen=True):
    """Rotation frequencies shared by the layers of a model.

    ``inv_freq`` holds ``rotary_dim / 2`` angles per position in radians; pair ``i`` of a row at position
    ``p`` is rotated by ``p * inv_freq[i]`` and scaled by ``factor``. Frequencies that depend on a length
    (dynamic, longrope) are resolved from the engine's context window before they come here.

    Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
    """

    inv_freq: tuple[float, ...]
    factor: float = 1.0

    @property
    def rotary_dim(self) -> int:
        """Number of leading elements of each head that are rotated."""
        return 2 * len(self.inv_freq)


class BaseOp(msgspec.Struct, frozen=True):
    """What every op tells of itself. ``kind`` is its name in `OP_KINDS`; the other three name its fields."""

    kind: ClassVar[str]
    read_fields: ClassVar[tuple[str, ...]] = ("x",)
    write_fields: ClassVar[tuple[str, ...]] = ("out",)
    tensor_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the values it reads."""
        return tuple(getattr(self, field) for field in self.read_fields)

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values it writes."""
        return tuple(getattr(self, field) for field in self.write_fields)

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """Its checkpoint tensors; None where it has no such tensor."""
        return tuple(getattr(self, field) for field in self.tensor_fields)


class Embed(BaseOp, frozen=True, tag="embed"):
    """``out[r] = table[token_ids[r]] * scale``; ``table`` is ``[vocab, width]``."""

    kind: ClassVar[str] = "embed"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef
    scale: float = 1.0


class Norm(BaseOp, frozen=True, tag="norm"):
    """Normalisation of each row, or of each of ``heads`` equal pieces of a row.

    ``rms``: ``x / sqrt(mean(x^2) + eps) * (offset + weight)``;
    ``layer``: ``(x - mean(x)) / sqrt(var(x) + eps) * (offset + weight) + bias``.
    ``weight`` has the length of a piece. ``weight=None`` means all ones.
    """

    kind: ClassVar[str] = "norm"
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias")
    x: str
    out: str
    weight: TensorRef | None
    eps: float
    method: Literal["rms", "layer"] = "rms"
    offset: float = 0.0
    heads: int = 1
    bias: TensorRef | None = None


class Linear(BaseOp, frozen=True, tag="linear"):
    """``outs[i] = x @ weights[i].T + biases[i]`` for one or several weights ``[out, in]`` on one input."""

    kind: ClassVar[str] = "linear"
    x: str
    outs: tuple[str, ...]
    weights: tuple[TensorRef, ...]
    biases: tuple[TensorRef | None, ...]

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values it writes."""
        return self.outs

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """Weight and bias of each output in turn."""
        return tuple(t for pair in zip(self.weights, self.biases, strict=True) for t in pair)


class Rope(BaseOp, frozen=True, tag="rope"):
    """Rotates the first ``table.rotary_dim`` elements of each head by the row's position.

    Half style pairs element ``i`` with ``i + rotary_dim / 2``; interleaved style pairs ``2i`` with ``2i + 1``.
    """

    kind: ClassVar[str] = "rope"
    x: str
    out: str
    heads: int
    head_dim: int
    table: RopeTable
    interleaved: bool = False


class Attention(BaseOp, frozen=True, tag="attention"):
    """Causal attention over paged keys and values: writes ``k`` and ``v`` of the step, then reads.

    Query head ``h`` uses key-value head ``h // (heads / kv_heads)``. A row at position ``p`` sees positions
    ``max(0, p - window + 1) .. p`` where the group has a window, else ``0 .. p``. Scores are
    ``q.k * scale``, then ``softcap * tanh(score / softcap)`` where given, then a softmax.
    ``layer`` is the layer's number in the model; ``group`` names the KV group that holds it.

    Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
    PagedAttention"; Ainslie et al. 2023, "GQA".
    """

    kind: ClassVar[str] = "attention"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "v")
    q: str
    k: str
    v: str
    out: str
    group: int
    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    softcap: float | None = None


class Glu(BaseOp, frozen=True, tag="glu"):
    """``out = activation(gate) * up``. ``gelu`` is exact (erf), ``gelu_tanh`` its tanh approximation.

    ``relu`` makes zero what is below ``threshold``, 0 or more (FATReLU: Kurtz et al. 2020, "Inducing and Exploiting
    Activation Sparsity"; models: Song et al. 2024, "ProSparse"). Other activations have none.
    """

    kind: ClassVar[str] = "glu"
    read_fields: ClassVar[tuple[str, ...]] = ("gate", "up")
    gate: str
    up: str
    out: str
    activation: Activation
    threshold: float = 0.0


class Add(BaseOp, frozen=True, tag="add"):
    """``out = a + b * scale``: the residual connection, with Granite's residual multiplier."""

    kind: ClassVar[str] = "add"
    read_fields: ClassVar[tuple[str, ...]] = ("a", "b")
    a: str
    b: str
    out: str
    scale: float = 1.0


class Head(BaseOp, frozen=True, tag="head"):
    """``logits = softcap(x @ weight.T * scale + bias)`` for the rows a `Selection` names.

    Logits are no value of the program: the device reduces them to candidates (see `llmd.api.step`).
    ``softcap`` c maps z to ``c * tanh(z / c)``.
    """

    kind: ClassVar[str] = "head"
    write_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias")
    x: str
    weight: TensorRef
    scale: float = 1.0
    softcap: float | None = None
    bias: TensorRef | None = None


class EmbedPosition(BaseOp, frozen=True, tag="embed_position"):
    """``out[r] = table[positions[r]]``: learned absolute positions; ``table`` has a row for each of the context.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    kind: ClassVar[str] = "embed_position"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef


class EmbedTokenType(BaseOp, frozen=True, tag="embed_token_type"):
    """``out[r] = table[token_types[r]]``: which of the joined texts a token is of. ``table`` is ``[types, width]``.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    kind: ClassVar[str] = "embed_token_type"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef


class EncoderAttention(BaseOp, frozen=True, tag="encoder_attention"):
    """Attention in both directions: each row sees all rows of its sequence in this step, and nothing is kept.

    ``q``, ``k`` and ``v`` are ``[rows, heads * head_dim]``; scores are ``q.k * scale``, then a softmax. Keys and values
    belong to no KV group: a sequence is whole in one step, so no later step asks for them.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
    """

    kind: ClassVar[str] = "encoder_attention"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "v")
    q: str
    k: str
    v: str
    out: str
    heads: int
    head_dim: int
    scale: float


class Activate(BaseOp, frozen=True, tag="activate"):
    """``out = activation(x)``: between the matrices of a feed-forward network without a gate."""

    kind: ClassVar[str] = "activate"
    x: str
    out: str
    activation: Activation


Op = (
    Embed
    | Norm
    | Linear
    | Rope
    | Attention
    | Glu
    | Add
    | Head
    | EmbedPosition
    | EmbedTokenType
    | EncoderAttention
    | Activate
)

OP_KINDS: tuple[str, ...] = tuple(op.kind for op in get_args(Op))
"""Every op kind; the index of a kind is its code in `llmd.api.encoding`."""

FACTOR_OPS: tuple[str, ...] = (Linear.kind, Head.kind)
"""Ops that multiply by matrices: a step reads the whole of each."""

TABLE_OPS: tuple[str, ...] = (Embed.kind, EmbedPosition.kind, EmbedTokenType.kind)
"""Ops that look up rows of a matrix."""
