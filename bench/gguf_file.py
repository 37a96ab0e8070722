"""Converts a checkpoint to a GGUF file of a llama.cpp type: ``python -m bench.gguf_file DIRECTORY PATH
TYPE``.

The checkpoint is written in bf16, then llama.cpp's quantiser converts it to ``Q4_0``, ``Q4_K_M``, ``Q8_0``, …
with its usual choice of a type for each tensor. Runs in the peer's environment (bench/requirements.txt).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from bench.checkpoint import to_float32
from bench.vocabulary import merges, tokens

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def main() -> None:
    directory, path, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    plain = path.with_suffix(".bf16")
    write_gguf(directory, plain)
    quantize(plain, path, kind)
    plain.unlink()


def quantize(plain: Path, path: Path, kind: str) -> None:
    """Quantise a file with llama.cpp's defaults for a type."""
    import llama_cpp  # imported here, because writing a file does not need the library

    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    part = path.with_suffix(".part")
    status = llama_cpp.llama_model_quantize(str(plain).encode(), str(part).encode(), options)
    if status:
        sys.exit(f"llama.cpp could not quantise {plain} to {kind}: status {status}")
    part.rename(path)


def write_gguf(directory: Path, path: Path) -> None:
    """Write a checkpoint with the tokens of `bench.vocabulary`."""
    config = json.loads((directory / "config.json").read_text())
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, config["model_type"])
    add_config(writer, config)
    add_vocabulary(writer, config["vocab_size"])
    for name, bits in stored_tensors(directory / "model.safetensors"):
        if bits.ndim == 1:
            writer.add_tensor(gguf_name(name), to_float32(bits))
        else:
            rows = interleaved(name, bits, config)
            writer.add_tensor(gguf_name(name), rows.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_config(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    """Write the metadata from ``config.json``."""
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(int(config["head_dim"] * config.get("partial_rotary_factor", 1.0)))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])


def add_vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    """Write the tokens of `bench.vocabulary`."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens(size))
    writer.add_token_merges([" ".join(merge) for merge in merges(size)])
    writer.add_token_types([gguf.TokenType.NORMAL] * (size - 1) + [gguf.TokenType.CONTROL])
    writer.add_eos_token_id(size - 1)
    writer.add_add_bos_token(False)


def stored_tensors(path: Path) -> Iterator[tuple[str, NDArray[np.uint16]]]:
    """Yield the names and memory-mapped bf16 bits of a safetensors file."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    mapped = np.memmap(path, np.uint8, "r", 8 + length)
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            yield name, mapped[first:end].view(np.uint16).reshape(entry["shape"])


def interleaved(name: str, rows: NDArray[np.uint16], config: dict[str, Any]) -> NDArray[np.uint16]:
    """Return the rows in the peer's order: for Llama, its RoPE rotates neighbouring elements instead of
    halves.
    """
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    field = heads.get(name.split(".")[-2])
    if config["model_type"] != "llama" or field is None:
        return rows
    halves = rows.reshape(config[field], 2, config["head_dim"] // 2, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def gguf_name(name: str) -> str:
    """Return the peer's name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_NAMES[rest.removesuffix('.weight')]}.weight"


if __name__ == "__main__":
    main()
