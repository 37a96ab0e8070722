"""The ops of a layer of RWKV-7: time mixing and channel mixing, in one part, since they share a state."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import (
    HIDDEN,
    Activate,
    Add,
    Gate,
    GeneralizedDelta,
    Glu,
    Linear,
    Norm,
    Op,
    TensorRef,
    TokenShift,
)
from llmd.api.activations import Activation

FIRST_VALUES = "first_values"
"""The values of the first layer, which all others mix with their own."""
INPUTS = "rwkvag"
"""What time mixing computes from mixes of rows, in the order of tensors that hold all shares: receptances,
decays, keys, values, rates and gates."""


class Ranks(msgspec.Struct, frozen=True):
    """Ranks of the products of two matrices."""

    decay: int
    rate: int
    value: int
    gate: int


class Sizes(msgspec.Struct, frozen=True):
    """What all layers have in common. Widths are in elements."""

    hidden: int
    heads: int
    head_dim: int
    inner: int
    """Width between the matrices of channel mixing."""
    ranks: Ranks
    eps: float
    has_norm_bias: bool
    activation: Activation
    joined_shares: bool
    """One tensor has the shares of all mixes of a layer."""

    @property
    def state_elements(self) -> int:
        """Elements that a layer keeps of a sequence: the last rows of both halves, and the matrices."""
        return 2 * self.hidden + self.heads * self.head_dim**2

    def norm(self, x: str, out: str, module: str) -> Norm:
        """Return a layer norm over rows."""
        weight, bias = (TensorRef(f"{module}.{kind}", (self.hidden,)) for kind in ("weight", "bias"))
        return Norm(x, out, weight, self.eps, "layer", bias=bias if self.has_norm_bias else None)


class Layer(msgspec.Struct, frozen=True):
    """A layer; its states are in the KV group ``group``."""

    number: int
    sizes: Sizes
    group: int

    def name(self, tensor: str) -> str:
        """Return the full name of a tensor."""
        return f"model.layers.{self.number}.{tensor}"

    def vector(self, tensor: str) -> TensorRef:
        """Return a tensor as long as a row."""
        return TensorRef(self.name(tensor), (self.sizes.hidden,))

    def norm(self, x: str, out: str, module: str) -> Norm:
        """Return a norm over rows."""
        return self.sizes.norm(x, out, self.name(module))

    def linear(self, x: str, outs: dict[str, tuple[str, int]], width: int, *, bias: bool = False) -> Linear:
        """Return a linear op. ``outs`` maps each output to its module and width; ``width`` is that of x."""
        weights = tuple(
            TensorRef(self.name(f"{module}.weight"), (out, width)) for module, out in outs.values()
        )
        biases = tuple(TensorRef(self.name(f"{module}.bias"), (out,)) for module, out in outs.values())
        return Linear(x, tuple(outs), weights, biases if bias else (None,) * len(outs))


def layer_ops(layer: Layer) -> tuple[Op, ...]:
    """Return the ops of a layer."""
    return (*_time_mixing(layer), *_channel_mixing(layer))


def _time_mixing(layer: Layer) -> Iterator[Op]:
    """Yield the half that mixes tokens.

    Source: Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic State Evolution", section 4.1.
    """
    hidden = layer.sizes.hidden
    yield layer.norm(HIDDEN, "x", "attn_norm")
    mixes = {value: f"{value}_mix" for value in INPUTS}
    shares = tuple(_shares(layer))
    yield TokenShift("x", tuple(mixes.values()), shares, layer.group, layer.number)
    yield layer.linear(mixes["r"], {"r": ("attn.r_proj", hidden)}, hidden)
    yield layer.linear(mixes["k"], {"k": ("attn.k_proj", hidden)}, hidden)
    yield from _values(layer, mixes["v"])
    yield from _low_rank(layer, mixes["w"], "w", layer.sizes.ranks.decay, "tanh")
    yield from _low_rank(layer, mixes["a"], "a", layer.sizes.ranks.rate, None)
    yield from _low_rank(layer, mixes["g"], "g", layer.sizes.ranks.gate, "sigmoid", bias=False)
    yield from _delta(layer)
    yield layer.linear("y", {"y": ("attn.o_proj", hidden)}, hidden)
    yield Add(HIDDEN, "y", HIDDEN)


def _shares(layer: Layer) -> Iterator[TensorRef]:
    """Yield the shares of each mix."""
    hidden = layer.sizes.hidden
    for number, value in enumerate(INPUTS):
        if layer.sizes.joined_shares:
            rows = (number * hidden, (number + 1) * hidden)
            yield TensorRef(layer.name("attn.x_x"), (len(INPUTS) * hidden,), rows=rows)
        else:
            yield layer.vector(f"attn.x_{value}")


def _values(layer: Layer, x: str) -> Iterator[Op]:
    """Yield the ops that compute the values; all layers but the first move them towards its values."""
    hidden, rank = layer.sizes.hidden, layer.sizes.ranks.value
    if layer.number == 0:
        yield layer.linear(x, {FIRST_VALUES: ("attn.v_proj", hidden)}, hidden)
        return
    yield layer.linear(x, {"v": ("attn.v_proj", hidden), "low": ("attn.v_lora.lora.0", rank)}, hidden)
    yield layer.linear("low", {"share": ("attn.v_lora.lora.2", hidden)}, rank, bias=True)
    yield Add(FIRST_VALUES, "v", "change", scale=-1.0)
    yield Gate("change", "share", "change")
    yield Add("v", "change", "v")


def _low_rank(
    layer: Layer, x: str, out: str, rank: int, activation: Activation | None, *, bias: bool = True
) -> Iterator[Op]:
    """Yield the ops of two matrices with an activation between them."""
    hidden, module = layer.sizes.hidden, f"attn.{out}_lora.lora"
    yield layer.linear(x, {"low": (f"{module}.0", rank)}, hidden)
    if activation is not None:
        yield Activate("low", "low", activation)
    yield layer.linear("low", {out: (f"{module}.2", hidden)}, rank, bias=bias)


def _delta(layer: Layer) -> Iterator[Op]:
    """Yield the ops that change the state and read it."""
    sizes, hidden = layer.sizes, layer.sizes.hidden
    yield GeneralizedDelta(
        "r",
        "k",
        "v" if layer.number else FIRST_VALUES,
        "w",
        "a",
        "y",
        "bonus",
        removal=layer.vector("attn.k_k"),
        mixing=layer.vector("attn.k_a"),
        bonuses=layer.vector("attn.r_k"),
        group=layer.group,
        layer=layer.number,
        heads=sizes.heads,
        head_dim=sizes.head_dim,
        offset=2 * hidden,
    )
    weight, bias = layer.vector("attn.g_norm.weight"), layer.vector("attn.g_norm.bias")
    eps = sizes.head_dim * sizes.eps
    yield Norm("y", "y", weight, eps, "layer", heads=sizes.heads, bias=bias, own_weights=True)
    yield Add("y", "bonus", "y")
    yield Glu("g", "y", "y", "identity")


def _channel_mixing(layer: Layer) -> Iterator[Op]:
    """Yield the half that mixes the elements of a row, after it was mixed with the row before."""
    sizes = layer.sizes
    yield layer.norm(HIDDEN, "x", "ffn_norm")
    yield TokenShift("x", ("k",), (layer.vector("ffn.x_k"),), layer.group, layer.number, sizes.hidden)
    yield layer.linear("k", {"k": ("ffn.key", sizes.inner)}, sizes.hidden)
    yield Activate("k", "k", sizes.activation)
    yield layer.linear("k", {"y": ("ffn.value", sizes.hidden)}, sizes.inner)
    yield Add(HIDDEN, "y", HIDDEN)
