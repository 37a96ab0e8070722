"""Rewrites a tiny model as a GGUF file, with the keys, names,
and order of rows that llama.cpp's converter gives it.

Names are those of the ``gguf`` package, which llama.cpp publishes. Source: ``convert_hf_to_gguf.py`` of
github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from tests.golden.compressed_tensors import DEEPSEEK_V4
from tests.golden.delta_tensors import STATE_NORM
from tests.golden.gemma4_tensors import GEMMA4
from tests.golden.gguf_compressed import add_compressed_keys, converted_tensors
from tests.golden.gguf_deltas import add_delta_keys, with_converted_deltas
from tests.golden.gguf_experts import add_expert_keys, with_joined_experts
from tests.golden.gguf_gemma4 import add_gemma4_keys, rope_divisors, with_converted_names
from tests.golden.gguf_kimi import add_kimi_keys, with_converted_kimi
from tests.golden.gguf_latents import add_latent_keys, with_split_latents
from tests.golden.gguf_rwkv import add_rwkv_keys, with_converted_rwkv
from tests.golden.gguf_spaces import add_space_keys, layers_having, with_converted_spaces
from tests.golden.models.tiny import CONTEXT_LEN, TinyModel
from tests.golden.mxfp4 import with_mxfp4_as_numbers
from tests.golden.tensors import OFFSET, as_float32, draw_tensors

ARCHITECTURES = {
    "mistral": "llama",
    "mixtral": "llama",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "granitemoeshared": "granitemoe",
    "glm4_moe": "glm4moe",
    "glm4_moe_lite": "deepseek2",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "deepseek_v32": "deepseek32",
    DEEPSEEK_V4: "deepseek4",
    "glm_moe_dsa": "glm-dsa",
    "gpt_oss": "gpt-oss",
    "granitemoehybrid": "granitehybrid",
    "qwen3_next": "qwen3next",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe_text": "qwen35moe",
    "kimi_linear": "kimi-linear",
    "falcon_h1": "falcon-h1",
    "xlm-roberta": "bert",
    "roberta": "bert",
}
"""Where they have another name than the ``model_type``."""
NAMED_AS = {"deepseek32": "glm-dsa"}
"""Architectures that the ``gguf`` package does not know, and those with the same names of tensors."""
ROTATES_NEIGHBOURS = ("llama", "granite", "granitemoe", "granitehybrid")
STORED_TYPES = {"f32": Type.F32, "f16": Type.F16, "bf16": Type.BF16}
POOLINGS = {kind.name.lower(): kind for kind in gguf.PoolingType}

Array = NDArray[np.float32]
Tensors = dict[str, Array]


def architecture_of(config: Mapping[str, Any]) -> str:
    """What llama.cpp calls the architecture of a configuration."""
    if "moe" in config.get("layers_block_type", ()):
        return "nemotron_h_moe"
    return str(ARCHITECTURES.get(config["model_type"], config["model_type"]))


def write_gguf(
    case: TinyModel,
    path: Path,
    kind: Type | None = None,
    *,
    pooling: str | None = None,
    num_parts: int = 0,
    changes: Mapping[str, Any] | None = None,
    edit: Callable[[Tensors], object] = lambda _tensors: None,
) -> Path:
    """Write the model, its matrices as ``kind``, by default as the case stores them;
    returns the (first) file.

    What is no matrix stays float32. Split files have ``num_parts`` parts at least. ``changes`` are other
    values of keys; those that are None are left out; ``edit`` changes the tensors.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    architecture = architecture_of(case.config)
    tensors = gguf_tensors(case)
    edit(tensors)
    most = math.ceil(len(tensors) / num_parts) if num_parts else 0
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=most)
    add_keys(writer, case.config, architecture)
    if pooling is not None:
        writer.add_pooling_type(POOLINGS[pooling])
    change_keys(writer, changes or {})
    for name, tensor in tensors.items():
        wanted = stored_type(case, name, tensor, kind)
        content = tensor if wanted == Type.I32 else gguf.quants.quantize(tensor, wanted)
        writer.add_tensor(name, content, raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path if not num_parts else min(path.parent.glob(f"{path.stem}-*.gguf"))


ALWAYS_F32 = (
    ".bias",
    "ssm_conv1d.weight",
    "ssm_conv1d_q.weight",
    "ssm_conv1d_k.weight",
    "ssm_conv1d_v.weight",
    "ssm_a",
    "ssm_d",
    "ssm_norm.weight",
    "ffn_gate_inp.weight",
    "time_mix_lerp_fused.weight",
    "_ape.weight",
    "_fn.weight",
)
"""Ends of the names of tensors that are in float32 whatever the format of the matrices."""


def stored_type(case: TinyModel, name: str, tensor: Array, kind: Type | None) -> Type:
    """The type of a tensor in a file whose matrices are of ``kind``."""
    if tensor.dtype == np.int32:
        return Type.I32
    if tensor.ndim == 1 or name.endswith(ALWAYS_F32):
        return Type.F32
    is_mxfp4 = case.is_quantised and "_exps" in name
    return kind or (Type.MXFP4 if is_mxfp4 else STORED_TYPES[case.dtype])


def change_keys(writer: gguf.GGUFWriter, changes: Mapping[str, Any]) -> None:
    """Write other values, integers as the converter does: without a sign, where they have none."""
    for key, value in changes.items():
        writer.kv_data[0].pop(key, None)
        stated = value.tolist() if isinstance(value, np.ndarray) else value
        if stated is not None:
            is_count = type(stated) is int and 0 <= stated < 1 << 32
            kind = gguf.GGUFValueType.UINT32 if is_count else gguf.GGUFValueType.get_type(stated)
            writer.add_key_value(key, stated, kind)


def gguf_tensors(case: TinyModel) -> Tensors:
    """The tensors by their names in the file."""
    config = case.config
    if config["model_type"] == DEEPSEEK_V4:
        return converted_tensors(dict(draw_tensors(case)))
    known = gguf.MODEL_ARCH_NAMES.items()
    named = NAMED_AS.get(architecture_of(config), architecture_of(config))
    arch = next(number for number, name in known if name == named)
    names = gguf.get_tensor_name_map(arch, num_layers(config))
    tensors = dict(_rope_tensors(config))
    drawn = with_mxfp4_as_numbers(dict(draw_tensors(case)))
    numbers = {name: as_float32(stored) for name, stored in drawn.items()}
    split = with_split_latents(with_converted_names(with_converted_deltas(numbers, config), config), config)
    of_states = with_converted_kimi(with_converted_spaces(split, config), config)
    of_states = with_converted_rwkv(of_states, config)
    for name, tensor in with_joined_experts(of_states, config).items():
        if "pooler" in name:
            continue
        mapped = names.get_name(name.removeprefix("roberta."), try_suffixes=(".weight", ".bias"))
        kept = name if name.startswith("blk.") else mapped
        if name.endswith(".sinks"):
            kept = f"{kept}.weight"
        assert kept is not None, name
        tensors[kept] = as_converted(name, tensor, config)
    return tensors


def as_converted(name: str, tensor: Array, config: Mapping[str, Any]) -> Array:
    """A tensor of transformers with the order of rows and the numbers that it has in the file."""
    architecture, module = architecture_of(config), name.split(".")[-2]
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(module)
    if heads and architecture in ROTATES_NEIGHBOURS:
        pairs = tensor.reshape(config[heads], 2, len(tensor) // config[heads] // 2, *tensor.shape[1:])
        return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(tensor.shape)
    if config["model_type"] in OFFSET and module.endswith("norm") and not name.endswith(STATE_NORM):
        return tensor + np.float32(1)
    if module == "position_embeddings" and config["model_type"] != "bert":
        return tensor[config["pad_token_id"] + 1 :]
    return tensor


def num_layers(config: Mapping[str, Any]) -> int:
    return int(config.get("num_hidden_layers") or len(config["layers_block_type"]))


def head_dim(config: Mapping[str, Any]) -> int:
    stated = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return int(stated)


def _rotated(config: Mapping[str, Any]) -> int:
    return int(head_dim(config) * config.get("partial_rotary_factor", 1.0))


def _rope_tensors(config: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    rope = config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type"))
    if kind == "llama3":
        yield "rope_freqs.weight", np.array(_llama3_divisors(config, rope), np.float32)
    if config["model_type"] == GEMMA4:
        yield "rope_freqs.weight", np.array(rope_divisors(config), np.float32)
    if kind == "longrope":
        for length in ("long", "short"):
            yield f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32)


def _llama3_divisors(config: Mapping[str, Any], rope: Mapping[str, Any]) -> list[float]:
    trained, low, high = (
        rope[name] for name in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor")
    )
    divisors = []
    dim = head_dim(config)
    for pair in range(dim // 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (2 * pair / dim)
        smooth = min(1.0, max(0.0, (trained / wavelength - low) / (high - low)))
        divisors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return divisors


def add_keys(writer: gguf.GGUFWriter, config: Mapping[str, Any], architecture: str) -> None:
    """What the converter writes of a configuration."""
    writer.add_context_length(config.get("max_position_embeddings", CONTEXT_LEN))
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(num_layers(config))
    if architecture in WITH_OTHER_KEYS:
        WITH_OTHER_KEYS[architecture](writer, config)
        return
    if "intermediate_size" in config:
        writer.add_feed_forward_length(_feed_forward_lengths(config))
    writer.add_head_count(config["num_attention_heads"])
    if architecture == "bert":
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_causal_attention(value=False)
        return
    attending = ("full_attention", "attention")
    writer.add_head_count_kv(layers_having(config, config["num_key_value_heads"], attending))
    if architecture.startswith("nemotron_h"):
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    else:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if architecture == "gemma4":
        add_gemma4_keys(writer, config)
        return
    writer.add_key_length(head_dim(config))
    writer.add_value_length(head_dim(config))
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(_rotated(config))
    _add_rope_scaling(writer, config)
    _add_special(writer, config, architecture)
    add_expert_keys(writer, config)
    add_delta_keys(writer, config)
    add_latent_keys(writer, config)
    add_space_keys(writer, config)


def _add_mamba2(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    """Write keys that models without attention have, 0 for what they lack."""
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])
    add_space_keys(writer, config)


WITH_OTHER_KEYS = {
    "mamba2": _add_mamba2,
    "rwkv7": add_rwkv_keys,
    "kimi-linear": add_kimi_keys,
    "deepseek4": add_compressed_keys,
}
"""What writes all but the first keys of a file, by architecture."""


def _feed_forward_lengths(config: Mapping[str, Any]) -> int | list[int]:
    if config["model_type"] == "granitemoehybrid":
        width = "intermediate_size" if config["num_local_experts"] else "shared_intermediate_size"
        return int(config[width])
    if "moe" in config.get("layers_block_type", ()):
        return layers_having(config, config["moe_intermediate_size"], ("moe",))
    return layers_having(config, config["intermediate_size"], ("mlp",))


def _add_rope_scaling(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    rope = config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type"))
    trained = {**config, **rope}.get("original_max_position_embeddings", config["max_position_embeddings"])
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(trained)
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if kind == "longrope":
        stretch = config["max_position_embeddings"] / trained
        writer.add_rope_scaling_orig_ctx_len(trained)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(trained)))


def _add_special(writer: gguf.GGUFWriter, config: Mapping[str, Any], architecture: str) -> None:
    """What only some architectures have."""
    if architecture.startswith(("gemma", "phi3", "gpt-oss")):
        writer.add_sliding_window(config["sliding_window"] or 0)
    if architecture.startswith("gemma"):
        writer.add_attention_scale(config["query_pre_attn_scalar"] ** -0.5)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if architecture == "gemma3":
        writer.add_sliding_window_pattern(config["sliding_window_pattern"])
    if architecture.startswith("granite"):
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
