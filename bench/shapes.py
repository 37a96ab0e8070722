"""Shapes of models that are measured with random weights."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A Llama: untied where ``tied`` is false."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool = True

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Checkpoint tensors by Hugging Face name."""
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab, self.hidden)}
        for layer in range(self.layers):
            at = f"model.layers.{layer}."
            shapes |= {
                at + "input_layernorm.weight": (self.hidden,),
                at + "self_attn.q_proj.weight": (q_width, self.hidden),
                at + "self_attn.k_proj.weight": (kv_width, self.hidden),
                at + "self_attn.v_proj.weight": (kv_width, self.hidden),
                at + "self_attn.o_proj.weight": (self.hidden, q_width),
                at + "post_attention_layernorm.weight": (self.hidden,),
                at + "mlp.gate_proj.weight": (self.ffn, self.hidden),
                at + "mlp.up_proj.weight": (self.ffn, self.hidden),
                at + "mlp.down_proj.weight": (self.hidden, self.ffn),
            }
        shapes["model.norm.weight"] = (self.hidden,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab, self.hidden)
        return shapes

    def config(self) -> dict[str, object]:
        """``config.json``."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
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
            "rope_theta": 10000.0,
            "max_position_embeddings": 4096,
        }


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("llama-1b", 2048, 16, 32, 8, 64, 8192, 32000),
        Shape("llama-100m", 768, 12, 12, 4, 64, 2048, 16000),
    )
}
