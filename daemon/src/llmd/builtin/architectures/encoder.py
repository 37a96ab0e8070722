"""Build a `ModelPlan` from a BERT-like configuration, for all encoder families."""

from __future__ import annotations

import msgspec

from llmd.api import (
    HIDDEN,
    Activate,
    Add,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Linear,
    ModelPlan,
    Norm,
    Op,
    Part,
    TensorRef,
)
from llmd.api.activations import Activation
from llmd.builtin.architectures.activation import read_activation
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.shape import Shape, read_shape


class Encoder(msgspec.Struct, frozen=True):
    """The part of a configuration that all families have."""

    architecture: str
    prefix: str
    """Prefix of the encoder's tensor names in a model with a classifier."""
    shape: Shape
    eps: float
    activation: Activation
    num_positions: int
    """Rows of the position table."""
    num_token_types: int
    unused_positions: int = 0
    """Rows of the position table before that of a text's first token."""

    @property
    def max_context_len(self) -> int:
        return self.num_positions - self.unused_positions


def read_encoder(
    fields: ConfigFields, *, architecture: str, prefix: str, unused_positions: int = 0
) -> Encoder:
    """Read the fields that every encoder has.

    Raises:
        UnsupportedModelError: positions are not learned and absolute, or the model is a decoder.
        CheckpointError: a size is missing or invalid, or contradicts another.
    """
    fields.choice("position_embedding_type", {"absolute": True}, "absolute")
    for name in ("is_decoder", "add_cross_attention"):
        if fields.flag(name, default=False):
            fields.refuse_unsupported(name, value=True, known="false")
    shape = read_shape(fields)
    if shape.q_width != shape.hidden_size or shape.kv_heads != shape.heads:
        fields.contradict(
            "num_key_value_heads or head_dim: the heads of an encoder must make up its hidden_size"
        )
    num_positions = fields.size("max_position_embeddings")
    if num_positions <= unused_positions:
        fields.contradict(
            f"max_position_embeddings {num_positions} leaves none after {unused_positions} unused"
        )
    return Encoder(
        architecture=architecture,
        prefix=prefix,
        shape=shape,
        eps=fields.positive("layer_norm_eps", 1e-12),
        activation=read_activation(fields, default="gelu"),
        num_positions=num_positions,
        num_token_types=fields.size("type_vocab_size", 2),
        unused_positions=unused_positions,
    )


def encoder_plan(encoder: Encoder, context_len: int | None, last_part: Part | None = None) -> ModelPlan:
    """Plan the embedding, the layers, and ``last_part`` if given. There is no KV cache, and so no KV group.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """
    build = _Builder(encoder)
    layers = (part for layer in range(encoder.shape.num_layers) for part in build.layer(layer))
    return ModelPlan(
        architecture=encoder.architecture,
        hidden_size=encoder.shape.hidden_size,
        vocab_size=encoder.shape.vocab_size,
        context_len=context_len or encoder.max_context_len,
        max_context_len=encoder.max_context_len,
        groups=(),
        parts=(build.embedding(), *layers, *(() if last_part is None else (last_part,))),
    )


def linear(x: str, outs: dict[str, str], out_width: int, in_width: int) -> Linear:
    """Return a linear op. ``outs`` maps each output, all of one width, to the module with weight and bias."""
    weights = tuple(TensorRef(f"{module}.weight", (out_width, in_width)) for module in outs.values())
    biases = tuple(TensorRef(f"{module}.bias", (out_width,)) for module in outs.values())
    return Linear(x, tuple(outs), weights, biases)


class _Builder(msgspec.Struct, frozen=True):
    encoder: Encoder

    def embedding(self) -> Part:
        hidden, module = self.encoder.shape.hidden_size, f"{self.encoder.prefix}embeddings"
        positions = (self.encoder.unused_positions, self.encoder.num_positions)
        tables = {
            "word": (self.encoder.shape.vocab_size, hidden),
            "position": (self.encoder.num_positions, hidden),
            "token_type": (self.encoder.num_token_types, hidden),
        }
        refs = {
            name: TensorRef(f"{module}.{name}_embeddings.weight", shape) for name, shape in tables.items()
        }
        ops: tuple[Op, ...] = (
            Embed("x", refs["word"]),
            EmbedTokenType("type", refs["token_type"]),
            Add("x", "type", "x"),
            EmbedPosition("position", msgspec.structs.replace(refs["position"], rows=positions)),
            Add("x", "position", "x"),
            self._norm("x", f"{module}.LayerNorm"),
        )
        return Part("embedding", "embed", None, ops)

    def layer(self, layer: int) -> tuple[Part, Part]:
        at = f"{self.encoder.prefix}encoder.layer.{layer}."
        return (
            Part(f"layer {layer} mixer", "mixer", layer, self._mixer(f"{at}attention.")),
            Part(f"layer {layer} ffn", "ffn", layer, self._feed_forward(at)),
        )

    def _mixer(self, at: str) -> tuple[Op, ...]:
        shape = self.encoder.shape
        hidden = shape.hidden_size
        names = {"q": f"{at}self.query", "k": f"{at}self.key", "v": f"{at}self.value"}
        return (
            linear(HIDDEN, names, hidden, hidden),
            EncoderAttention("q", "k", "v", "y", shape.heads, shape.head_dim, shape.head_dim**-0.5),
            linear("y", {"y": f"{at}output.dense"}, hidden, hidden),
            *self._close(f"{at}output.LayerNorm"),
        )

    def _feed_forward(self, at: str) -> tuple[Op, ...]:
        hidden, inner = self.encoder.shape.hidden_size, self.encoder.shape.intermediate_size
        return (
            linear(HIDDEN, {"y": f"{at}intermediate.dense"}, inner, hidden),
            Activate("y", "y", self.encoder.activation),
            linear("y", {"y": f"{at}output.dense"}, hidden, inner),
            *self._close(f"{at}output.LayerNorm"),
        )

    def _close(self, norm: str) -> tuple[Op, ...]:
        """Return the residual connection, which is normalised after the addition."""
        return (Add("y", HIDDEN, "y"), self._norm("y", norm))

    def _norm(self, x: str, module: str) -> Norm:
        width = (self.encoder.shape.hidden_size,)
        weight, bias = (TensorRef(f"{module}.{name}", width) for name in ("weight", "bias"))
        return Norm(x, HIDDEN, weight, self.encoder.eps, "layer", bias=bias)
