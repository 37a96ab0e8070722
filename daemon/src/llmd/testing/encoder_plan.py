"""A small encoder for tests that need a plan with bidirectional attention but no checkpoint."""

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


class TinyEncoder(msgspec.Struct, frozen=True):
    """The sizes of the small encoder. With ``labels`` above 0 it ends in a part with that many scores per
    row.
    """

    layers: int = 2
    hidden: int = 40
    heads: int = 4
    head_dim: int = 12
    ffn: int = 72
    vocab: int = 131
    context_len: int = 640
    labels: int = 0

    def plan(self) -> ModelPlan:
        """Return the encoder as a plan. It has no KV cache, and so no KV group."""
        layers = (part for number in range(self.layers) for part in self._layer(number))
        score = (Part("score", "score", None, self._score()),) if self.labels else ()
        return ModelPlan(
            architecture="tiny encoder",
            hidden_size=self.hidden,
            vocab_size=self.vocab,
            context_len=self.context_len,
            max_context_len=self.context_len,
            groups=(),
            parts=(Part("embed", "embed", None, self._embed()), *layers, *score),
        )

    def _embed(self) -> tuple[Op, ...]:
        return (
            Embed("token", TensorRef("tokens", (self.vocab, self.hidden))),
            EmbedPosition("position", TensorRef("positions", (self.context_len, self.hidden))),
            EmbedTokenType("type", TensorRef("types", (2, self.hidden))),
            Add("token", "position", "x"),
            Add("x", "type", "x"),
            self._norm("x", HIDDEN, "embed.norm"),
        )

    def _layer(self, number: int) -> tuple[Part, Part]:
        at = f"layers.{number}."
        width = self.heads * self.head_dim
        mixer = (
            self._linear(HIDDEN, {"q": at + "q", "k": at + "k", "v": at + "v"}, (width, self.hidden)),
            EncoderAttention("q", "k", "v", "mixed", self.heads, self.head_dim, self.head_dim**-0.5),
            self._linear("mixed", {"o": at + "o"}, (self.hidden, width)),
            Add(HIDDEN, "o", "x"),
            self._norm("x", HIDDEN, at + "norm1"),
        )
        ffn = (
            self._linear(HIDDEN, {"up": at + "up"}, (self.ffn, self.hidden)),
            Activate("up", "up", "gelu"),
            self._linear("up", {"down": at + "down"}, (self.hidden, self.ffn)),
            Add(HIDDEN, "down", "x"),
            self._norm("x", HIDDEN, at + "norm2"),
        )
        return Part(at + "mixer", "mixer", number, mixer), Part(at + "ffn", "ffn", number, ffn)

    def _score(self) -> tuple[Op, ...]:
        return (
            self._linear(HIDDEN, {"x": "dense"}, (self.hidden, self.hidden)),
            Activate("x", "x", "tanh"),
            self._linear("x", {HIDDEN: "labels"}, (self.labels, self.hidden)),
        )

    def _linear(self, x: str, weights: dict[str, str], shape: tuple[int, int]) -> Linear:
        names = weights.values()
        return Linear(
            x,
            tuple(weights),
            tuple(TensorRef(name, shape) for name in names),
            tuple(TensorRef(f"{name}.bias", shape[:1]) for name in names),
        )

    def _norm(self, x: str, out: str, name: str) -> Norm:
        width = (self.hidden,)
        return Norm(x, out, TensorRef(name, width), 1e-5, "layer", bias=TensorRef(f"{name}.bias", width))
