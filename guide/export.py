"""Write the model directory that llmd ships: a Hugging Face Llama checkpoint in bf16."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from guide import tokens
from guide.model import Guide, Shape

DIRECTORY = Path(__file__).parent.parent / "daemon" / "src" / "llmd" / "builtin" / "guide"


def write_model(model: Guide, tokenizer: Tokenizer, directory: Path = DIRECTORY) -> None:
    """Write weights, configuration and tokenizer, replacing what is there."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.to(torch.bfloat16).contiguous() for name, weight in model.checkpoint()}
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(directory / "tokenizer.json"))
    end = tokens.SPECIAL.index(tokens.END)
    _write(directory / "config.json", _config(model.shape, end))
    _write(
        directory / "generation_config.json", {"eos_token_id": end, "pad_token_id": end, "do_sample": False}
    )
    _write(directory / "tokenizer_config.json", _tokenizer_config(model.shape))


def _config(shape: Shape, end: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.positions,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.theta,
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": end,
        "torch_dtype": "bfloat16",
    }


def _tokenizer_config(shape: Shape) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": shape.positions,
        "bos_token": None,
        "eos_token": tokens.END,
        "pad_token": tokens.END,
        "additional_special_tokens": list(tokens.SPECIAL[1:]),
        "add_bos_token": False,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "chat_template": tokens.CHAT_TEMPLATE,
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
