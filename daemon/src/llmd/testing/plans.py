"""A small decoder for tests that need a plan but no checkpoint."""

from __future__ import annotations

from typing import Literal

import msgspec

from llmd.api import (
    HIDDEN,
    Add,
    Attention,
    Embed,
    Experts,
    Gate,
    GatedDelta,
    Glu,
    Head,
    KVGroup,
    Linear,
    ModelPlan,
    Norm,
    Op,
    Part,
    Recurrence,
    Rope,
    RopeTable,
    Router,
    StateSpace,
    TensorRef,
)


class TinyModel(msgspec.Struct, frozen=True):
    """The sizes of the small model. Odd layers have windowed attention, even layers full attention.

    If it is ``hybrid``, every third and fourth layer of four keeps a state in place of attention. If it has
    ``experts``, they replace the feed-forward networks; in odd layers all rows share a gated one as well.

    The sizes are unusual on purpose: grouped heads, ``heads * head_dim != hidden``, a vocabulary that is not
    a multiple of a vector length, a partial rotation.
    """

    layers: int = 4
    hidden: int = 40
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 12
    rotary_dim: int = 8
    ffn: int = 72
    vocab: int = 131
    window: int | None = 20
    context_len: int = 256
    softcap: float | None = 30.0
    bias: bool = True
    tied: bool = False
    """Whether the head shares the embedding table."""
    hybrid: bool = False
    states: Literal["vectors", "matrices"] = "vectors"
    """What layers keep: a vector, for a recurrence; or matrices, in turn for the gated delta rule and for a
    state space.
    """
    state: int = 28
    """Elements of the state of a recurrence."""
    experts: int = 0
    """Experts of a layer; 0: a feed-forward network without experts."""
    top_k: int = 2
    """Experts that a row uses."""

    def plan(self) -> ModelPlan:
        """Return the model as a plan: KV groups for full and windowed attention and for states, if any."""
        return ModelPlan(
            architecture="tiny",
            hidden_size=self.hidden,
            vocab_size=self.vocab,
            context_len=self.context_len,
            max_context_len=self.context_len,
            groups=self._groups(),
            parts=(self._embed(), *(p for n in range(self.layers) for p in self._layer(n)), self._head()),
        )

    def _groups(self) -> tuple[KVGroup, ...]:
        windows = (None,) if self.window is None else (None, self.window)
        groups = [
            KVGroup(group, window, self.kv_heads, self.head_dim, self._layers_of(group))
            for group, window in enumerate(windows)
        ]
        if self.hybrid:
            states = len(groups)
            layers = self._layers_of(states)
            elements = self.state if self.states == "vectors" else self._delta(0).state_elements
            groups.append(KVGroup(states, None, 0, 0, layers, kind="state", state_bytes=4 * elements))
        return tuple(groups)

    def _layers_of(self, group: int) -> tuple[int, ...]:
        return tuple(number for number in range(self.layers) if self._group_of(number) == group)

    def _group_of(self, number: int) -> int:
        attentions = 1 if self.window is None else 2
        return attentions if self.hybrid and number % 4 >= 2 else number % attentions

    def _embed(self) -> Part:
        return Part("embed", "embed", None, (Embed(HIDDEN, self._tensor("embed", self.vocab), scale=1.5),))

    def _head(self) -> Part:
        weight = self._tensor("embed" if self.tied else "head", self.vocab)
        ops = (
            Norm(HIDDEN, "normed", TensorRef("norm", (self.hidden,)), eps=1e-5),
            Head("normed", weight, scale=0.5, softcap=self.softcap),
        )
        return Part("head", "head", None, ops)

    def _layer(self, number: int) -> tuple[Part, Part]:
        keeps_state = self.hybrid and number % 4 >= 2
        with_state = self._recurrence if self.states == "vectors" else self._with_matrices
        ops = with_state(number) if keeps_state else self._attention(number)
        mixer = Part(f"layers.{number}.mixer", "mixer", number, ops)
        feed_forward = self._mixture(number) if self.experts else self._ffn(number)
        ffn = Part(f"layers.{number}.ffn", "ffn", number, feed_forward)
        return mixer, ffn

    def _recurrence(self, number: int) -> tuple[Op, ...]:
        at = f"layers.{number}."
        into, back = (self.state, self.hidden), (self.hidden, self.state)
        return (
            Norm(HIDDEN, "x", TensorRef(at + "norm1", (self.hidden,)), eps=1e-5),
            Linear("x", ("u",), (TensorRef(at + "u", into),), (None,)),
            Recurrence("u", "s", TensorRef(at + "decay", (self.state,)), self._group_of(number), number),
            Linear("s", ("o",), (TensorRef(at + "o", back),), (None,)),
            Add(HIDDEN, "o", HIDDEN, scale=0.75),
        )

    def _with_matrices(self, number: int) -> tuple[Op, ...]:
        at, op = f"layers.{number}.", self._space(number) if number % 2 else self._delta(number)
        sizes = op.sizes
        keys, values = sizes.key_heads * sizes.key_dim, sizes.heads * sizes.value_dim
        widths = (keys, keys, values, sizes.heads, sizes.heads)[: len(op.reads)]
        into = tuple(
            TensorRef(at + name, (width, self.hidden)) for name, width in zip(op.reads, widths, strict=True)
        )
        back = TensorRef(at + "o", (self.hidden, values))
        return (
            Norm(HIDDEN, "u", TensorRef(at + "norm1", (self.hidden,)), eps=1e-5),
            Linear("u", op.reads, into, (None,) * len(into)),
            op,
            Linear("s", ("o",), (back,), (None,)),
            Add(HIDDEN, "o", HIDDEN, scale=0.75),
        )

    def _delta(self, number: int) -> GatedDelta:
        at, heads, key_heads, key_dim, value_dim, taps = f"layers.{number}.", 4, 2, 8, 12, 3

        def filters(name: str, width: int) -> TensorRef:
            return TensorRef(f"{at}{name}_taps", (width, 1, taps))

        return GatedDelta(
            "q", "k", "v", "decay", "beta", "s",
            filters("q", key_heads * key_dim), filters("k", key_heads * key_dim),
            filters("v", heads * value_dim),
            TensorRef(at + "rates", (heads,)), TensorRef(at + "decay_bias", (heads,)),
            self._group_of(number), number, heads, key_heads, key_dim, value_dim,
        )  # fmt: skip

    def _space(self, number: int) -> StateSpace:
        """Return an op that keeps as much as `_delta`."""
        at, delta = f"layers.{number}.", self._delta(number)

        def vector(name: str) -> TensorRef:
            return TensorRef(at + name, (delta.heads,))

        return StateSpace(
            "c", "b", "x", "time", "s", delta.q_taps, delta.k_taps, delta.v_taps,
            vector("rates"), vector("time_bias"), vector("skips"), delta.group, number,
            delta.heads, delta.key_heads, delta.key_dim, delta.value_dim, least_time=0.05,
            c_bias=TensorRef(at + "c_bias", delta.q_taps.shape[:1]),
            b_bias=TensorRef(at + "b_bias", delta.k_taps.shape[:1]),
            x_bias=TensorRef(at + "x_bias", delta.v_taps.shape[:1]),
        )  # fmt: skip

    def _attention(self, number: int) -> tuple[Op, ...]:
        at = f"layers.{number}."
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        fused = TensorRef(at + "qkv", (q_width + 2 * kv_width, self.hidden))
        cuts = ((0, q_width), (q_width, q_width + kv_width), (q_width + kv_width, q_width + 2 * kv_width))
        biases = tuple(
            TensorRef(at + f"bias.{n}", (b - a,)) if self.bias else None
            for n, (a, b) in zip("qkv", cuts, strict=True)
        )
        q_norm = TensorRef(at + "q_norm", (self.head_dim,))
        rope = RopeTable(tuple(100.0 ** (-i / (self.rotary_dim / 2)) for i in range(self.rotary_dim // 2)))
        return (
            Norm(HIDDEN, "x", TensorRef(at + "norm1", (self.hidden,)), eps=1e-5, offset=1.0),
            Linear("x", ("q", "k", "v"), tuple(msgspec.structs.replace(fused, rows=c) for c in cuts), biases),
            Norm("q", "qn", q_norm, eps=1e-6, heads=self.heads),
            Rope("qn", "qr", self.heads, self.head_dim, rope),
            Rope("k", "kr", self.kv_heads, self.head_dim, rope, interleaved=bool(number % 2)),
            Attention(
                "qr", "kr", "v", "mixed",
                group=self._group_of(number), layer=number, heads=self.heads, kv_heads=self.kv_heads,
                head_dim=self.head_dim, scale=self.head_dim**-0.5, softcap=self.softcap if number == 0 else None,
            ),
            Linear("mixed", ("o",), (TensorRef(at + "o", (self.hidden, q_width)),), (None,)),
            Add(HIDDEN, "o", HIDDEN, scale=0.75),
        )  # fmt: skip

    def _ffn(self, number: int) -> tuple[Norm | Linear | Glu | Add, ...]:
        at = f"layers.{number}."
        gate_up = (
            TensorRef(at + "gate", (self.ffn, self.hidden)),
            TensorRef(at + "up", (self.ffn, self.hidden)),
        )
        norm = TensorRef(at + "norm2", (self.hidden,))
        shift = TensorRef(at + "norm2.bias", (self.hidden,))
        return (
            Norm(HIDDEN, "x", norm, eps=1e-5, method="layer" if number == 1 else "rms", bias=shift if number == 1 else None),
            Linear("x", ("g", "u"), gate_up, (None, None)),
            Glu("g", "u", "gated", ("silu", "gelu", "gelu_tanh", "relu2")[number % 4]),
            Linear("gated", ("down",), (TensorRef(at + "down", (self.hidden, self.ffn)),), (None,)),
            Add(HIDDEN, "down", HIDDEN),
        )  # fmt: skip

    def _mixture(self, number: int) -> tuple[Op, ...]:
        at, count = f"layers.{number}.", self.experts

        def stack(name: str, rows: int, width: int) -> TensorRef:
            return TensorRef(f"{at}experts.{name}", (count, rows, width), is_stack=True)

        router = Router("x", "r", TensorRef(at + "router", (count, self.hidden)), self.top_k)
        experts = Experts(
            "x",
            "r",
            "routed",
            stack("gate", self.ffn, self.hidden),
            stack("up", self.ffn, self.hidden),
            stack("down", self.hidden, self.ffn),
            "silu",
            self.top_k,
        )
        norm = Norm(HIDDEN, "x", TensorRef(at + "norm2", (self.hidden,)), eps=1e-5)
        mixed = (norm, router, experts, Add(HIDDEN, "routed", HIDDEN))
        return mixed if number % 2 == 0 else (*mixed[:-1], *self._shared(at), mixed[-1])

    def _shared(self, at: str) -> tuple[Op, ...]:
        """Return the ops of a gated network for all rows, which add its output to ``routed``."""
        weights = tuple(TensorRef(f"{at}shared.{name}", (self.ffn, self.hidden)) for name in ("gate", "up"))
        return (
            Linear("x", ("g", "u"), weights, (None, None)),
            Glu("g", "u", "gated", "silu"),
            Linear("gated", ("shared",), (TensorRef(at + "shared.down", (self.hidden, self.ffn)),), (None,)),
            Linear("x", ("opening",), (TensorRef(at + "shared.opening", (1, self.hidden)),), (None,)),
            Gate("shared", "opening", "opened"),
            Add("routed", "opened", "routed"),
        )

    def _tensor(self, name: str, rows: int) -> TensorRef:
        return TensorRef(name, (rows, self.hidden))
