"""Shapes of models for measurements with random weights, in architectures that both sides support."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

Family = Literal["llama", "qwen3", "phi3"]
_CLASSES = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "phi3": "Phi3ForCausalLM"}


@dataclass(frozen=True)
class Shape:
    """A decoder. ``qwen3`` normalises queries and keys per head; ``phi3`` has fused projections."""

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
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def products(self) -> int:
        """Weights that each token is multiplied by, without the head."""
        return sum(
            math.prod(dims) for name, dims in self.tensors().items() if len(dims) == 2 and ".layers." in name
        )

    @property
    def head_products(self) -> int:
        """Weights of the head, which multiply each token that needs logits."""
        return self.vocab * self.hidden

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the checkpoint tensors by Hugging Face name."""
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab, self.hidden)}
        for layer in range(self.layers):
            at = f"model.layers.{layer}."
            shapes |= {at + name + ".weight": dims for name, dims in self._layer_tensors().items()}
        shapes["model.norm.weight"] = (self.hidden,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab, self.hidden)
        return shapes

    def _layer_tensors(self) -> dict[str, tuple[int, ...]]:
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        norms: dict[str, tuple[int, ...]] = {
            "input_layernorm": (self.hidden,),
            "post_attention_layernorm": (self.hidden,),
        }
        outputs = {
            "self_attn.o_proj": (self.hidden, q_width),
            "mlp.down_proj": (self.hidden, self.ffn),
        }
        if self.family == "phi3":
            return norms | {
                "self_attn.qkv_proj": (q_width + 2 * kv_width, self.hidden),
                "mlp.gate_up_proj": (2 * self.ffn, self.hidden),
                **outputs,
            }
        if self.family == "qwen3":
            norms |= {"self_attn.q_norm": (self.head_dim,), "self_attn.k_norm": (self.head_dim,)}
        return norms | {
            "self_attn.q_proj": (q_width, self.hidden),
            "self_attn.k_proj": (kv_width, self.hidden),
            "self_attn.v_proj": (kv_width, self.hidden),
            "mlp.gate_proj": (self.ffn, self.hidden),
            "mlp.up_proj": (self.ffn, self.hidden),
            **outputs,
        }

    def config(self) -> dict[str, object]:
        """Return the content of ``config.json``."""
        return {
            "architectures": [_CLASSES[self.family]],
            "model_type": self.family,
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
        }


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("llama-1b", 2048, 16, 32, 8, 64, 8192, 32000),
        Shape("llama-100m", 768, 12, 12, 4, 64, 2048, 16000),
        Shape("qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, family="qwen3", rope_theta=1e6),
        Shape("llama-8b", 4096, 32, 32, 8, 128, 14336, 128256, tied=False, context=8192, rope_theta=5e5),
        Shape("phi-4-mini", 3072, 32, 24, 8, 128, 8192, 200064, family="phi3", rotary=0.75),
    )
}
