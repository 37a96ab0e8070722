"""The ops of model programs; ``docs/ops.md`` has the mathematics of each.

A value is a float32 matrix ``[rows, width]`` with one row for each token of the step. An op names the values
that it reads and writes in its ``str`` fields; a part is a list of ops, run in order. Ops are descriptions:
devices do the computing.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import msgspec

from llmd.api.activations import Activation
from llmd.api.adapter_ops import Adapt
from llmd.api.base_op import BaseOp
from llmd.api.compressed_ops import Compress, MergeAttention
from llmd.api.expert_ops import Experts, Router
from llmd.api.latent_ops import HeadLinear, Indexer, Join
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.api.stream_ops import CollapseStreams, MixStreams, StreamWeights
from llmd.api.tensors import TensorRef
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift


class RopeTable(msgspec.Struct, frozen=True):
    """Rotation frequencies, shared by layers of a model.

    Pair ``i`` of a row at position ``p`` is rotated by ``p * inv_freq[i]`` and scaled by ``factor``.
    Frequencies that depend on a length (dynamic, longrope) are already resolved for the engine's context
    window.

    Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
    """

    inv_freq: tuple[float, ...]
    """``rotary_dim / 2`` angles per position, in radians."""
    factor: float = 1.0
    """Scale of the rotated elements."""

    @property
    def rotary_dim(self) -> int:
        """Number of leading elements of each head that are rotated."""
        return 2 * len(self.inv_freq)


class Embed(BaseOp, frozen=True, tag="embed"):
    """``out[r] = table[token_ids[r]] * scale``; ``table`` is ``[vocab, width]``.

    With ``columns``, ``out`` has only these of each row of the table.
    """

    kind: ClassVar[str] = "embed"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef
    scale: float = 1.0
    columns: tuple[int, int] | None = None
    """Half-open range. A device that looks up ranges states `llmd.api.features.COLUMNS`. None: all."""

    @property
    def column_range(self) -> tuple[int, int]:
        """The columns, also if they are all."""
        return self.columns or (0, self.table.view_shape[1])


class Norm(BaseOp, frozen=True, tag="norm"):
    """Normalise each row, or each of ``heads`` equal slices of a row.

    ``rms``: ``x / sqrt(mean(x^2) + eps) * (offset + weight)``;
    ``layer``: ``(x - mean(x)) / sqrt(var(x) + eps) * (offset + weight) + bias``.
    """

    kind: ClassVar[str] = "norm"
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias")
    x: str
    out: str
    weight: TensorRef | None
    """As long as a slice, or with ``own_weights`` as a row; None: all ones."""
    eps: float
    """Added to the mean square or variance."""
    method: Literal["rms", "layer"] = "rms"
    offset: float = 0.0
    """Added to the weight; 1 for Gemma."""
    heads: int = 1
    """Number of slices."""
    bias: TensorRef | None = None
    """As long as the weight; None: no bias."""
    own_weights: bool = False
    """Each slice has weights of its own. A device that reads this states `llmd.api.features.OWN_WEIGHTS`."""


class Linear(BaseOp, frozen=True, tag="linear"):
    """``outs[i] = x @ weights[i].T + biases[i]``: one or more weights ``[out, in]`` with the same input."""

    kind: ClassVar[str] = "linear"
    x: str
    outs: tuple[str, ...]
    weights: tuple[TensorRef, ...]
    biases: tuple[TensorRef | None, ...]

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values that the op writes."""
        return self.outs

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """Weight and bias of the first output, of the second, and so on."""
        return tuple(t for pair in zip(self.weights, self.biases, strict=True) for t in pair)


class Rope(BaseOp, frozen=True, tag="rope"):
    """Rotate the first ``table.rotary_dim`` elements of each head according to the row's position ``p``.

    With a ``stride``, the position is ``p - p % stride``: that of the first token of a vector that stands for
    several.
    """

    kind: ClassVar[str] = "rope"
    x: str
    out: str
    heads: int
    """Number of heads in a row."""
    head_dim: int
    """Elements of a head."""
    table: RopeTable
    interleaved: bool = False
    """Pair element ``2i`` with ``2i + 1``; else ``i`` with ``i + rotary_dim / 2``."""
    stride: int = 1
    """A device that reads another one than 1 states `llmd.api.features.STRIDES`."""


class Attention(BaseOp, frozen=True, tag="attention"):
    """Causal attention over paged keys and values: write ``k`` and ``v`` of the step, then attend.

    Without ``k`` and ``v``, nothing is written: the op reads the keys and values of another layer, which an
    earlier op of the program writes.

    Query head ``h`` uses key-value head ``h // (heads / kv_heads)``. A row at position ``p`` sees positions
    ``max(0, p - window + 1) .. p`` if the group has a window, else ``0 .. p``. Scores are ``q.k * scale``,
    then ``softcap * tanh(score / softcap)`` if there is a ``softcap``, then a softmax. With ``sinks``, the
    softmax has one more score for each query head, which has no value: weights add up to less than 1.

    In a group of kind ``latent``, ``v`` is the same value as ``k``: the first ``value_dim`` elements of a key
    are the value. With ``chosen``, a row sees only the positions that an `Indexer` chose for it. If the group
    has a ``stride``, positions are those of vectors: of the row at position ``p``, vector
    ``(p + 1) // stride - 1`` is written if ``p + 1`` is a multiple of the stride, and ``0`` to this one are
    seen. A row that sees nothing is 0.

    Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
    PagedAttention"; Ainslie et al. 2023, "GQA"; OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card" (sinks,
    after Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"); Brandon et al. 2024,
    "Reducing Transformer Key-Value Cache Size with Cross-Layer Attention" (keys of another layer).
    """

    kind: ClassVar[str] = "attention"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "v", "chosen")
    tensor_fields: ClassVar[tuple[str, ...]] = ("sinks",)
    q: str
    k: str | None
    """None, as ``v``: a device that reads keys of another layer states `llmd.api.features.SHARED_KEYS`."""
    v: str | None
    out: str
    group: int
    """`KVGroup.id` of the group that the layer belongs to."""
    layer: int
    """Number in the model of the layer whose keys and values the op reads."""
    heads: int
    """Number of query heads."""
    kv_heads: int
    """Number of key-value heads."""
    head_dim: int
    """Elements of a query and of a key."""
    scale: float
    softcap: float | None = None
    """None: no cap."""
    sinks: TensorRef | None = None
    """``[heads]``: neither scaled nor capped. A device that reads them states `llmd.api.features.SINKS`."""
    value_dim: int = 0
    """Elements of a value, as in the group; if 0 is given, as many as in a key."""
    chosen: str | None = None
    """What an `Indexer` wrote, only in a ``latent`` group. A device that reads it states
    `llmd.api.features.CHOSEN_POSITIONS`. None: a row sees all positions before it."""
    sums: str | None = None
    """Second output ``[rows, heads]``: the logarithm of the sum of the exponentials of each head's scores,
    its sink included; minus infinity if there is none. A device that writes it states
    `llmd.api.features.ATTENTION_SUMS`."""

    def __post_init__(self) -> None:
        if not self.value_dim:
            msgspec.structs.force_setattr(self, "value_dim", self.head_dim)

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values that the op writes."""
        return (self.out,) if self.sums is None else (self.out, self.sums)


class Glu(BaseOp, frozen=True, tag="glu"):
    """``out = activation(gate) * up``.

    With a ``limit``, larger elements of ``gate`` become the limit, and elements of ``up`` with a larger
    magnitude the limit with their sign.
    """

    kind: ClassVar[str] = "glu"
    read_fields: ClassVar[tuple[str, ...]] = ("gate", "up")
    gate: str
    up: str
    out: str
    activation: Activation
    threshold: float = 0.0
    """For ``relu`` only, at least 0: lower values become 0 (FATReLU: Kurtz et al. 2020, "Inducing and
    Exploiting Activation Sparsity"; models: Song et al. 2024, "ProSparse")."""
    limit: float | None = None
    """A device that reads it states `llmd.api.features.LIMITS`. None: no limit."""


class Add(BaseOp, frozen=True, tag="add"):
    """``out = a + b * scale``: the residual connection, with Granite's residual multiplier."""

    kind: ClassVar[str] = "add"
    read_fields: ClassVar[tuple[str, ...]] = ("a", "b")
    a: str
    b: str
    out: str
    scale: float = 1.0


class Multiply(BaseOp, frozen=True, tag="multiply"):
    """``out = x * factor``: a learned number for all elements, such as Gemma 4's ``layer_scalar``."""

    kind: ClassVar[str] = "multiply"
    tensor_fields: ClassVar[tuple[str, ...]] = ("factor",)
    x: str
    out: str
    factor: TensorRef
    """``[1]``."""


class Head(BaseOp, frozen=True, tag="head"):
    """``logits = softcap(x @ weight.T * scale + bias)`` for the rows of a `Selection`.

    Logits are not a value of the program: the device reduces them to candidates (see `llmd.api.step`).
    """

    kind: ClassVar[str] = "head"
    write_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("weight", "bias")
    x: str
    weight: TensorRef
    scale: float = 1.0
    softcap: float | None = None
    """c maps a logit z to ``c * tanh(z / c)``; None: no cap."""
    bias: TensorRef | None = None


class EmbedPosition(BaseOp, frozen=True, tag="embed_position"):
    """``out[r] = table[positions[r]]``: learned absolute positions, one row per position of the context.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    kind: ClassVar[str] = "embed_position"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef


class EmbedTokenType(BaseOp, frozen=True, tag="embed_token_type"):
    """``out[r] = table[token_types[r]]``: the text that a token belongs to. ``table`` is ``[types, width]``.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    kind: ClassVar[str] = "embed_token_type"
    read_fields: ClassVar[tuple[str, ...]] = ()
    tensor_fields: ClassVar[tuple[str, ...]] = ("table",)
    out: str
    table: TensorRef


class EncoderAttention(BaseOp, frozen=True, tag="encoder_attention"):
    """Bidirectional attention: each row sees all rows of its sequence in this step.

    ``q``, ``k`` and ``v`` are ``[rows, heads * head_dim]``; scores are ``q.k * scale``, then a softmax. There
    is no KV cache: a sequence is complete in one step.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.
    """

    kind: ClassVar[str] = "encoder_attention"
    read_fields: ClassVar[tuple[str, ...]] = ("q", "k", "v")
    q: str
    k: str
    v: str
    out: str
    heads: int
    """Number of heads."""
    head_dim: int
    """Elements of a head."""
    scale: float


class Activate(BaseOp, frozen=True, tag="activate"):
    """``out = activation(x)``: between the matrices of an ungated feed-forward network."""

    kind: ClassVar[str] = "activate"
    x: str
    out: str
    activation: Activation


class Recurrence(BaseOp, frozen=True, tag="recurrence"):
    """The simplest linear recurrence, per element: ``state = sigmoid(decay) * state + x; out = state``.

    An op for tests: it keeps a state as the layers of hybrid models do. The state is float32 ``[width]``.

    Source: the diagonal recurrence of Orvieto et al. 2023, "Resurrecting Recurrent Neural Networks for Long
    Sequences", with real decays.
    """

    kind: ClassVar[str] = "recurrence"
    tensor_fields: ClassVar[tuple[str, ...]] = ("decay",)
    x: str
    out: str
    decay: TensorRef
    """As long as a row."""
    group: int
    """`KVGroup.id` of the ``state`` group that the layer belongs to."""
    layer: int
    """Number of the layer in the model."""


class Gate(BaseOp, frozen=True, tag="gate"):
    """``out = sigmoid(gate) * x``; ``gate`` has one element for each of as many equal slices of ``x``.

    Source: Qiu et al. 2025, "Gated Attention for Large Language Models".
    """

    kind: ClassVar[str] = "gate"
    read_fields: ClassVar[tuple[str, ...]] = ("x", "gate")
    x: str
    gate: str
    out: str


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
    | Recurrence
    | Router
    | Experts
    | Gate
    | GatedDelta
    | StateSpace
    | HeadLinear
    | Join
    | Multiply
    | TokenShift
    | GeneralizedDelta
    | Adapt
    | Indexer
    | Compress
    | MergeAttention
    | StreamWeights
    | CollapseStreams
    | MixStreams
)

OP_KINDS: tuple[str, ...] = tuple(op.kind for op in get_args(Op))
"""All op kinds; the index of a kind is its code in `llmd.api.encoding`."""

FACTOR_OPS: tuple[str, ...] = (Linear.kind, Head.kind, Experts.kind, HeadLinear.kind)
"""Ops that multiply by matrices, in any format; tensors with even indices are matrices, others are biases."""

KVOp = Attention | Recurrence | GatedDelta | StateSpace | TokenShift | GeneralizedDelta | Indexer | Compress
"""Ops that keep something of a sequence, in their `KVGroup`."""

TABLE_OPS: tuple[str, ...] = (Embed.kind, EmbedPosition.kind, EmbedTokenType.kind)
"""Ops that look up rows of a matrix."""
