"""Writes a random model of a shape as a GGUF file: ``python -m bench.gguf_file SHAPE PATH``.

Runs in an environment that has ``gguf`` (bench/requirements.txt, bench/requirements-serving.txt).
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

from bench.checkpoint import draw_bf16
from bench.shapes import SHAPES, Shape
from bench.vocabulary import merges, tokens

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """The peer's name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_NAMES[rest.removesuffix('.weight')]}.weight"


def write_gguf(shape: Shape, path: Path) -> None:
    """Write the same random model as `bench.checkpoint` with Q8_0 matrices, unless it is there already."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path.with_suffix(".part"), "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(shape.vocab)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens(shape.vocab))
    writer.add_token_merges([" ".join(merge) for merge in merges(shape.vocab)])
    writer.add_token_types([gguf.TokenType.NORMAL] * (shape.vocab - 1) + [gguf.TokenType.CONTROL])
    writer.add_eos_token_id(shape.vocab - 1)
    writer.add_add_bos_token(False)
    q8_0 = gguf.GGMLQuantizationType.Q8_0
    for index, (name, dims) in enumerate(shape.tensors().items()):
        values = (draw_bf16(index, dims).astype(np.uint32) << 16).view(np.float32)
        if len(dims) == 1:
            writer.add_tensor(gguf_name(name), values)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, q8_0), raw_dtype=q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    write_gguf(SHAPES[sys.argv[1]], Path(sys.argv[2]))
