"""The guide's network in torch: a Llama, written for training, where it is compiled as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; the defaults are the committed model's."""

    vocab: int = 2048
    hidden: int = 256
    layers: int = 7
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 32
    intermediate: int = 640
    positions: int = 1024
    theta: float = 10000.0
    eps: float = 1e-5


class Layer(nn.Module):
    """Causal self-attention with grouped keys and values, then SwiGLU; RMSNorm before each."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        rows = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.attention_norm = nn.Parameter(torch.ones(shape.hidden))
        self.mlp_norm = nn.Parameter(torch.ones(shape.hidden))
        self.qkv = nn.Linear(shape.hidden, rows, bias=False)
        self.out = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.intermediate, bias=False)
        self.down = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Transform x [batch, length, hidden]."""
        x = x + self._attend(x, cos, sin)
        gate, up = self.gate_up(self._normed(x, self.mlp_norm)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, (self.shape.hidden,), weight, self.shape.eps)

    def _attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shape, (batch, length, _) = self.shape, x.shape
        rows = self.qkv(self._normed(x, self.attention_norm)).view(batch, length, -1, shape.head_dim)
        query, key, value = rows.split((shape.heads, shape.kv_heads, shape.kv_heads), 2)
        query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
        heads = [y.transpose(1, 2) for y in (query, key, value)]
        mixed = _products(*heads) if x.device.type == "cpu" else _fused(*heads)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class Guide(nn.Module):
    """The whole network, tied at both ends."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                depth = (2 * shape.layers) ** -0.5 if name.endswith(("out.weight", "down.weight")) else 1.0
                nn.init.normal_(weight, std=0.02 * depth)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        """Logits [places, vocab] after the flat positions ``places`` of ids [batch, length]."""
        x = self.embedding(ids)
        cos, sin = _angles(self.shape, x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        x = functional.rms_norm(x.flatten(0, 1)[places], (self.shape.hidden,), self.norm, self.shape.eps)
        return functional.linear(x, self.embedding.weight)

    def checkpoint(self) -> Iterator[tuple[str, Tensor]]:
        """Weights under the names of a Hugging Face Llama."""
        yield "model.embed_tokens.weight", self.embedding.weight
        yield "model.norm.weight", self.norm
        shape = self.shape
        sizes = [heads * shape.head_dim for heads in (shape.heads, shape.kv_heads, shape.kv_heads)]
        for i, layer in enumerate(self.layers):
            query, key, value = layer.qkv.weight.split(sizes)
            gate, up = layer.gate_up.weight.chunk(2)
            yield f"model.layers.{i}.input_layernorm.weight", layer.attention_norm
            yield f"model.layers.{i}.post_attention_layernorm.weight", layer.mlp_norm
            attention = {"q": query, "k": key, "v": value, "o": layer.out.weight}
            yield from (
                (f"model.layers.{i}.self_attn.{name}_proj.weight", w) for name, w in attention.items()
            )
            mlp = {"gate": gate, "up": up, "down": layer.down.weight}
            yield from ((f"model.layers.{i}.mlp.{name}_proj.weight", w) for name, w in mlp.items())


def _angles(shape: Shape, x: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles of x [batch, length, hidden], both [length, 1, head_dim / 2]."""
    places = torch.arange(x.shape[1], dtype=torch.float32, device=x.device)
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32, device=x.device) / shape.head_dim
    angles = places[:, None] * shape.theta**-exponents
    return angles.cos().to(x.dtype)[:, None], angles.sin().to(x.dtype)[:, None]


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding in the half-split style; x is [batch, length, heads, head_dim]."""
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def _products(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention of query [batch, heads, length, head_dim] to fewer heads of keys and values, as plain
    matrix products: on a processor, at these lengths, they are faster than the fused kernel and its 16-bit
    backward.
    """
    batch, heads, length, width = query.shape
    group = heads // key.shape[1]
    past = torch.full((length, length), float("-inf"), dtype=query.dtype, device=query.device).triu(1)
    query = query.reshape(-1, group * length, width)
    key, value = key.reshape(-1, length, width), value.reshape(-1, length, width)
    mask = past.repeat(group, 1)[None]
    scores = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=width**-0.5)
    return torch.bmm(scores.softmax(-1), value).view(batch, heads, length, width)


def _fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same as one kernel of a GPU."""
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
