"""A small valid Llama directory, written separately for each test that damages or reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.checkpoint import write_safetensors

NUM_LAYERS = 2
HIDDEN = 16
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 4
FFN = 24
VOCAB = 260
CONTEXT_LEN = 64

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")

CONFIG: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": FFN,
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "vocab_size": VOCAB,
    "max_position_embeddings": CONTEXT_LEN,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 256,
    "eos_token_id": 257,
    "torch_dtype": "float32",
}

Tensors = dict[str, NDArray[np.generic]]


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of the model in the order in which they are stored."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, HIDDEN)}
    for number in range(NUM_LAYERS):
        layer = f"model.layers.{number}"
        found |= {
            f"{layer}.input_layernorm.weight": (HIDDEN,),
            f"{layer}.self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
            f"{layer}.self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{layer}.self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{layer}.self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
            f"{layer}.post_attention_layernorm.weight": (HIDDEN,),
            f"{layer}.mlp.gate_proj.weight": (FFN, HIDDEN),
            f"{layer}.mlp.up_proj.weight": (FFN, HIDDEN),
            f"{layer}.mlp.down_proj.weight": (HIDDEN, FFN),
        }
    return found | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCAB, HIDDEN)}


def tensors() -> Tensors:
    generator = np.random.default_rng(0)
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes().items()}


def write_small_model(directory: Path) -> Path:
    """``config.json``, one weight file and ``tokenizer.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    write_config(directory)
    write_weights(directory, tensors())
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer()))
    return directory


def write_config(directory: Path, **changes: Any) -> None:
    (directory / "config.json").write_text(json.dumps({**CONFIG, **changes}))


def write_weights(directory: Path, content: Mapping[str, NDArray[np.generic]]) -> None:
    write_safetensors(directory / SINGLE, content, {"format": "pt"})


def write_sharded(directory: Path) -> None:
    """Replace the single file by an index and two shards, the tensors dealt out in turn."""
    (directory / SINGLE).unlink()
    content = tensors()
    weight_map = {name: SHARDS[i % 2] for i, name in enumerate(content)}
    for shard in SHARDS:
        held = {name: array for name, array in content.items() if weight_map[name] == shard}
        write_safetensors(directory / shard, held, {"format": "pt"})
    total = sum(array.nbytes for array in content.values())
    (directory / INDEX).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))


def write_raw(path: Path, header: Mapping[str, Any] | bytes, data: bytes = b"") -> Path:
    """A safetensors file with any header at all."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def read_raw(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and data of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), content[start:]


def tokenizer() -> dict[str, Any]:
    """Bytes and three special tokens, without merges."""
    alphabet = _byte_alphabet()
    vocab = {symbol: number for number, symbol in enumerate(alphabet)}
    specials = {"<s>": 256, "</s>": 257, "<pad>": 258}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for text, number in specials.items()
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab | specials,
            "merges": [],
        },
    }


def _byte_alphabet() -> list[str]:
    """GPT-2's printable character for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
