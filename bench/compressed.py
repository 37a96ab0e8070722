"""The layers of DeepSeek-V4 for measurements: their tensors, and what they keep of a token."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice

STRIDES = (4, 128)
"""Tokens for each vector: layers take turns. Published models begin with layers that only have a window."""
OVERLAPPING = 4
"""The stride of vectors that are made of twice as many tokens, and that an indexer chooses among."""
HALF_BYTES = 2

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Compressed:
    """Attention to vectors that stand for several tokens, and to the last tokens, with mixed streams."""

    query_rank: int
    groups: int
    """Groups of heads, each with its own matrix after attention."""
    group_rank: int
    turned: int
    """Elements of a head that rotate."""
    index_heads: int
    index_dim: int
    index_top_k: int
    window: int = 128
    streams: int = 4
    limit: float = 10.0
    """Of gates."""

    def strides(self, layers: int) -> list[int]:
        """Return the tokens for each vector of each layer."""
        return list(islice(cycle(STRIDES), layers))

    def token_bytes(self, layers: int, head_dim: int) -> int:
        """Return the bytes that layers keep of a token in float16, if nothing leaves a window."""
        halves = sum(self._kept(stride, head_dim) for stride in self.strides(layers))
        return -(-HALF_BYTES * halves // max(STRIDES))

    def _kept(self, stride: int, head_dim: int) -> int:
        """Return the elements that a layer keeps of 128 tokens: those of the window, parts and vectors."""
        dims = [head_dim, self.index_dim] if stride == OVERLAPPING else [head_dim]
        parts = 2 * (1 + (stride == OVERLAPPING))
        return max(STRIDES) * (head_dim + parts * sum(dims)) + max(STRIDES) // stride * sum(dims)

    def layer(self, stride: int, hidden: int, heads: int, head_dim: int) -> dict[str, Dims]:
        """Return the shapes of the tensors of a layer before its feed-forward network."""
        low, inner = self.query_rank, self.groups * self.group_rank
        shapes = self._streams("hc_attn", hidden) | {
            "attn_norm.weight": (hidden,),
            "attn.wq_a.weight": (low, hidden),
            "attn.q_norm.weight": (low,),
            "attn.wq_b.weight": (heads * head_dim, low),
            "attn.wkv.weight": (head_dim, hidden),
            "attn.kv_norm.weight": (head_dim,),
            "attn.wo_a.weight": (inner, heads * head_dim // self.groups),
            "attn.wo_b.weight": (hidden, inner),
            "attn.attn_sink": (heads,),
            **_compressor("attn.compressor", stride, hidden, head_dim),
        }
        if stride != OVERLAPPING:
            return shapes
        return shapes | {
            **_compressor("attn.indexer.compressor", stride, hidden, self.index_dim),
            "attn.indexer.wq_b.weight": (self.index_heads * self.index_dim, low),
            "attn.indexer.weights_proj.weight": (self.index_heads, hidden),
        }

    def feed_forward(self, hidden: int, experts: int, inner: int) -> dict[str, Dims]:
        """Return the shapes of the tensors of the experts of a layer."""
        modules = (*(f"experts.{number}" for number in range(experts)), "shared_experts")
        matrices = {
            f"ffn.{module}.{name}.weight": (hidden, inner) if name == "w2" else (inner, hidden)
            for module in modules
            for name in ("w1", "w2", "w3")
        }
        router: dict[str, Dims] = {"ffn.gate.weight": (experts, hidden), "ffn.gate.bias": (experts,)}
        return self._streams("hc_ffn", hidden) | {"ffn_norm.weight": (hidden,)} | router | matrices

    def head(self, hidden: int) -> dict[str, Dims]:
        """Return the shapes of the tensors that make one stream of all before the head."""
        return _weights("hc_head", self.streams, self.streams * hidden, scales=1)

    def config(self, layers: int) -> dict[str, object]:
        """Return the fields of ``config.json`` that other models lack."""
        return {
            "q_lora_rank": self.query_rank,
            "o_groups": self.groups,
            "o_lora_rank": self.group_rank,
            "qk_rope_head_dim": self.turned,
            "index_n_heads": self.index_heads,
            "index_head_dim": self.index_dim,
            "index_topk": self.index_top_k,
            "sliding_window": self.window,
            "compress_ratios": self.strides(layers),
            "compress_rope_theta": 160000.0,
            "num_hash_layers": 0,
            "n_shared_experts": 1,
            "routed_scaling_factor": 1.5,
            "scoring_func": "sqrtsoftplus",
            "swiglu_limit": self.limit,
            "hc_mult": self.streams,
            "hc_sinkhorn_iters": 20,
            "hc_eps": 1e-6,
        }

    def _streams(self, name: str, hidden: int) -> dict[str, Dims]:
        return _weights(name, self.streams * (self.streams + 2), self.streams * hidden, scales=3)


def _weights(name: str, rows: int, width: int, *, scales: int) -> dict[str, Dims]:
    return {f"{name}_fn": (rows, width), f"{name}_base": (rows,), f"{name}_scale": (scales,)}


def _compressor(module: str, stride: int, hidden: int, dim: int) -> dict[str, Dims]:
    width = dim * (1 + (stride == OVERLAPPING))
    return {
        f"{module}.wkv.weight": (width, hidden),
        f"{module}.wgate.weight": (width, hidden),
        f"{module}.ape": (stride, width),
        f"{module}.norm.weight": (dim,),
    }
