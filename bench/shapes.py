"""Shapes of models for measurements with random weights, in architectures that both sides support."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

from bench.compressed import Compressed

Family = Literal["llama", "qwen3", "phi3", "qwen3_moe", "qwen3_5", "deepseek_v4"]
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "qwen3_5": "Qwen3_5ForCausalLM",
    "deepseek_v4": "DeepseekV4ForCausalLM",
}
_MODEL_TYPES = {"qwen3_5": "qwen3_5_text"}
"""Where it is not the family."""
FLOAT_BYTES = 4
EXPERTS = ".experts."
"""In the names of tensors of experts."""


@dataclass(frozen=True)
class Mixture:
    """The experts of each layer."""

    experts: int
    used: int
    """Experts that a token uses."""
    ffn: int
    """Elements between the matrices of an expert."""


@dataclass(frozen=True)
class LinearAttention:
    """The layers of linear attention: all but every ``interval``-th. Keys and values are equally wide."""

    interval: int
    key_heads: int
    heads: int
    head_dim: int
    taps: int = 4
    """Rows that a convolution sees."""

    @property
    def width(self) -> int:
        """Elements of the queries, keys and values of a row."""
        return (2 * self.key_heads + self.heads) * self.head_dim

    @property
    def state_bytes(self) -> int:
        """Bytes that a layer keeps of a sequence."""
        return FLOAT_BYTES * ((self.taps - 1) * self.width + self.heads * self.head_dim**2)


@dataclass(frozen=True)
class Shape:
    """A decoder. ``qwen3`` normalises queries and keys per head, and ``qwen3_moe`` also has a mixture;
    ``phi3`` has fused projections; ``qwen3_5`` has linear and ``deepseek_v4`` compressed attention.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool = True
    family: Family = "llama"
    context: int = 32768
    rope_theta: float = 10000.0
    rotary: float = 1.0
    mixture: Mixture | None = None
    linear: LinearAttention | None = None
    compressed: Compressed | None = None

    def with_layers(self, layers: int) -> Self:
        """Return the shape with another number of layers and its own name.

        Raises:
            ValueError: ``layers`` is below 1.
        """
        if layers < 1:
            raise ValueError(f"a model of {layers} layers: give it 1 or more")
        return replace(self, name=f"{self.name}-of-{layers}-layers", layers=layers)

    @property
    def kv_token_bytes(self) -> int:
        """KV bytes of a token in float16."""
        if self.compressed is not None:
            return self.compressed.token_bytes(self.layers, self.head_dim)
        full = sum(not self.is_linear(layer) for layer in range(self.layers))
        return 2 * 2 * full * self.kv_heads * self.head_dim

    @property
    def state_bytes(self) -> int:
        """Bytes of the states of a sequence."""
        linear = sum(self.is_linear(layer) for layer in range(self.layers))
        return 0 if self.linear is None else linear * self.linear.state_bytes

    @property
    def products(self) -> int:
        """Weights that each token is multiplied by, without the head: of a mixture, those of its experts."""
        matrices = {name: math.prod(dims) for name, dims in self.tensors().items() if _is_matrix(name, dims)}
        experts = sum(count for name, count in matrices.items() if EXPERTS in name)
        unused = 0 if self.mixture is None else experts * (1 - self.mixture.used / self.mixture.experts)
        return sum(matrices.values()) - round(unused)

    @property
    def head_products(self) -> int:
        """Weights of the head, which multiply each token that needs logits."""
        return self.vocab * self.hidden

    def is_linear(self, layer: int) -> bool:
        """Whether a layer has linear attention."""
        return self.linear is not None and (layer + 1) % self.linear.interval != 0

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the checkpoint tensors by the names that the family is published with."""
        if self.compressed is not None:
            return self._compressed_tensors(self.compressed)
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab, self.hidden)}
        for layer in range(self.layers):
            shapes |= {f"model.layers.{layer}.{name}": dims for name, dims in self._layer(layer).items()}
        shapes["model.norm.weight"] = (self.hidden,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab, self.hidden)
        return shapes

    def _compressed_tensors(self, kind: Compressed) -> dict[str, tuple[int, ...]]:
        assert self.mixture is not None
        shapes: dict[str, tuple[int, ...]] = {"embed.weight": (self.vocab, self.hidden)}
        for layer, stride in enumerate(kind.strides(self.layers)):
            inside = kind.layer(stride, self.hidden, self.heads, self.head_dim)
            inside |= kind.feed_forward(self.hidden, self.mixture.experts, self.mixture.ffn)
            shapes |= {f"layers.{layer}.{name}": dims for name, dims in inside.items()}
        last: dict[str, tuple[int, ...]] = {
            "norm.weight": (self.hidden,),
            "head.weight": (self.vocab, self.hidden),
        }
        return shapes | kind.head(self.hidden) | last

    def _layer(self, layer: int) -> dict[str, tuple[int, ...]]:
        mixer = self._linear_attention() if self.is_linear(layer) else self._attention()
        return {
            "input_layernorm.weight": (self.hidden,),
            "post_attention_layernorm.weight": (self.hidden,),
            **mixer,
            **self._feed_forward(),
        }

    def _attention(self) -> dict[str, tuple[int, ...]]:
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        out = {"self_attn.o_proj.weight": (self.hidden, q_width)}
        if self.family == "phi3":
            return {"self_attn.qkv_proj.weight": (q_width + 2 * kv_width, self.hidden), **out}
        norms: dict[str, tuple[int, ...]] = {}
        if self.family.startswith("qwen3"):
            norms = {f"self_attn.{value}_norm.weight": (self.head_dim,) for value in "qk"}
        gates = q_width if self.family == "qwen3_5" else 0
        return norms | {
            "self_attn.q_proj.weight": (q_width + gates, self.hidden),
            "self_attn.k_proj.weight": (kv_width, self.hidden),
            "self_attn.v_proj.weight": (kv_width, self.hidden),
            **out,
        }

    def _linear_attention(self) -> dict[str, tuple[int, ...]]:
        assert self.linear is not None
        heads, values = self.linear.heads, self.linear.heads * self.linear.head_dim
        return {
            "linear_attn.in_proj_qkv.weight": (self.linear.width, self.hidden),
            "linear_attn.in_proj_z.weight": (values, self.hidden),
            "linear_attn.in_proj_b.weight": (heads, self.hidden),
            "linear_attn.in_proj_a.weight": (heads, self.hidden),
            "linear_attn.conv1d.weight": (self.linear.width, 1, self.linear.taps),
            "linear_attn.A_log": (heads,),
            "linear_attn.dt_bias": (heads,),
            "linear_attn.norm.weight": (self.linear.head_dim,),
            "linear_attn.out_proj.weight": (self.hidden, values),
        }

    def _feed_forward(self) -> dict[str, tuple[int, ...]]:
        if self.mixture is not None:
            matrices = _feed_forward(self.hidden, self.mixture.ffn)
            return {"mlp.gate.weight": (self.mixture.experts, self.hidden)} | {
                f"mlp{EXPERTS}{expert}.{name}": dims
                for expert in range(self.mixture.experts)
                for name, dims in matrices.items()
            }
        if self.family == "phi3":
            down = {"mlp.down_proj.weight": (self.hidden, self.ffn)}
            return {"mlp.gate_up_proj.weight": (2 * self.ffn, self.hidden), **down}
        return {f"mlp.{name}": dims for name, dims in _feed_forward(self.hidden, self.ffn).items()}

    def config(self) -> dict[str, object]:
        """Return the content of ``config.json``."""
        return {
            "architectures": [_CLASSES[self.family]],
            "model_type": _MODEL_TYPES.get(self.family, self.family),
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.ffn,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": self.rope_theta,
            "partial_rotary_factor": self.rotary,
            "max_position_embeddings": self.context,
            **self._mixture_config(),
            **self._linear_config(),
            **({} if self.compressed is None else self.compressed.config(self.layers)),
        }

    def _mixture_config(self) -> dict[str, object]:
        if self.mixture is None:
            return {}
        count = "num_experts" if self.compressed is None else "n_routed_experts"
        return {
            count: self.mixture.experts,
            "num_experts_per_tok": self.mixture.used,
            "moe_intermediate_size": self.mixture.ffn,
            "norm_topk_prob": True,
        }

    def _linear_config(self) -> dict[str, object]:
        if self.linear is None:
            return {}
        return {
            "full_attention_interval": self.linear.interval,
            "linear_conv_kernel_dim": self.linear.taps,
            "linear_num_key_heads": self.linear.key_heads,
            "linear_num_value_heads": self.linear.heads,
            "linear_key_head_dim": self.linear.head_dim,
            "linear_value_head_dim": self.linear.head_dim,
        }


def _feed_forward(hidden: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {
        "gate_proj.weight": (inner, hidden),
        "up_proj.weight": (inner, hidden),
        "down_proj.weight": (hidden, inner),
    }


def _is_matrix(name: str, dims: tuple[int, ...]) -> bool:
    return len(dims) == 2 and "layers." in name


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("llama-1b", 2048, 16, 32, 8, 64, 8192, 32000),
        Shape("llama-100m", 768, 12, 12, 4, 64, 2048, 16000),
        Shape("qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, family="qwen3", rope_theta=1e6),
        Shape(
            "qwen3-a3b",
            2048,
            48,
            32,
            4,
            128,
            6144,
            151936,
            tied=False,
            family="qwen3_moe",
            rope_theta=1e6,
            mixture=Mixture(128, 8, 768),
        ),
        Shape(
            "qwen3.5-4b",
            2560,
            32,
            16,
            4,
            256,
            9216,
            248320,
            family="qwen3_5",
            rope_theta=1e7,
            rotary=0.25,
            linear=LinearAttention(4, 16, 32, 128),
        ),
        Shape(
            "deepseek-v4-flash-of-64-experts",
            4096,
            43,
            64,
            1,
            512,
            2048,
            129280,
            tied=False,
            family="deepseek_v4",
            mixture=Mixture(64, 6, 2048),
            compressed=Compressed(1024, 8, 1024, 64, 64, 128, 512),
        ),
        Shape("llama-8b", 4096, 32, 32, 8, 128, 14336, 128256, tied=False, context=8192, rope_theta=5e5),
        Shape("phi-4-mini", 3072, 32, 24, 8, 128, 8192, 200064, family="phi3", rotary=0.75),
    )
}
