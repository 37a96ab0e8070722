"""Names, shapes and spreads of a tiny model's tensors:
what transformers would write for its configuration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.compressed_tensors import (
    DEEPSEEK_V4,
    TABLE,
    compressed_shapes,
    compressed_spread,
    draw_table,
    published_form,
)
from tests.golden.delta_tensors import HYBRIDS, STATE_NORM, delta_shapes, keeps_state
from tests.golden.encoder_tensors import PREFIXES as ENCODERS
from tests.golden.encoder_tensors import encoder_shapes, encoder_spread
from tests.golden.expert_tensors import GAINS as EXPERT_GAINS
from tests.golden.expert_tensors import expert_shapes, has_experts
from tests.golden.fp8 import fp8_tensors, is_fp8
from tests.golden.gemma4_tensors import FACTORS, GEMMA4, layer_shapes, model_shapes
from tests.golden.gemma4_tensors import GAINS as GEMMA4_GAINS
from tests.golden.kimi_tensors import KIMI, kimi_shapes
from tests.golden.latent_tensors import LATENT, latent_shapes
from tests.golden.models.tiny import TinyModel
from tests.golden.mxfp4 import MXFP4_PARTS, fp4_tensors, is_fp4, mxfp4_bytes
from tests.golden.nvfp4 import is_nvfp4, nvfp4_tensors
from tests.golden.rwkv_tensors import RWKV7, rwkv_shapes, rwkv_spread
from tests.golden.space_tensors import (
    BACKBONES,
    FALCON,
    backbone_shapes,
    falcon_space_shapes,
    granite_dense_shapes,
    granite_space_shapes,
    keeps_space,
)
from tests.golden.weights import draw, from_bf16, to_bf16

GEMMA = ("gemma2", "gemma3_text")
OFFSET = (*GEMMA, *HYBRIDS)
"""Model types whose norms add 1 to their weights."""
GAINS = {
    "embed_tokens": 1.0,
    "lm_head": 2.0,
    "down_proj": 0.6,
    "q_proj": 1.5,
    "k_proj": 1.5,
    "qkv_proj": 1.4,
    "q_norm": 1.4,
    "k_norm": 1.4,
    "q_b_proj": 1.5,
    "kv_b_proj": 1.5,
    "bias": 0.4,
}
"""Standard deviation of the embedding and of biases; mean of norms; elsewhere output over input deviation.

The gains of q and k make attention scores spread over several units, so that attention is peaked and each
position, mask and angle counts.
"""

Shape = tuple[int, ...]

WHOLE: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Shape]]] = {
    **dict.fromkeys(BACKBONES, backbone_shapes),
    RWKV7: rwkv_shapes,
    DEEPSEEK_V4: compressed_shapes,
}
"""What lists all tensors of a model, for model types whose names are all their own."""


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, Shape]:
    """Name and shape of every tensor in the checkpoint of that configuration, in file order."""
    if config["model_type"] in ENCODERS:
        return encoder_shapes(config)
    if config["model_type"] in WHOLE:
        return WHOLE[config["model_type"]](config)
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (vocab, hidden)}
    if config["model_type"] == GEMMA4:
        shapes |= model_shapes(config)
    for layer in range(config["num_hidden_layers"]):
        if config["model_type"] == GEMMA4:
            shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in layer_shapes(config, layer)}
            continue
        feed_forward = expert_shapes(config) if has_experts(config, layer) else _mlp(config)
        mixer = _mixer(config, layer)
        for name, shape in (*mixer, *feed_forward, *_norms(config)):
            shapes[f"model.layers.{layer}.{name}"] = shape
    last = "final_layernorm" if config["model_type"] == FALCON else "norm"
    shapes[f"model.{last}.weight"] = (hidden,)
    if config["architectures"][0].endswith("Model"):  # saved by itself, without a head above it
        return {name.removeprefix("model."): shape for name, shape in shapes.items()}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def draw_tensors(case: TinyModel) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Every tensor as stored: float32, float16, uint16 holding bf16 bits, int64, bytes or pairs of MXFP4
    weights, int8 holding the bits of FP8 weights, or bytes of NVFP4 weights, with scales.
    """
    for name, shape in tensor_shapes(case.config).items():
        if name.endswith(MXFP4_PARTS):
            yield name, mxfp4_bytes(case.seed, name, shape)
            continue
        if name.endswith(TABLE):
            yield name, draw_table(case.seed, name, shape, case.config["n_routed_experts"])
            continue
        mean, std = _spread_of_family(case, name, shape)
        values = draw(case.seed, name, shape, mean, std)
        if is_fp8(case.config, name):
            yield from fp8_tensors(case.config, case.seed, name, values)
        elif is_nvfp4(case.config, name):
            yield from nvfp4_tensors(case.config, case.seed, name, values)
        elif is_fp4(case.config, name):
            yield from fp4_tensors(case.seed, name, values)
        else:
            yield name, _stored(values, _dtype_of(case, name))


def as_float32(stored: NDArray[np.generic]) -> NDArray[np.float32]:
    """What a stored tensor says."""
    if stored.dtype == np.uint16:
        return from_bf16(stored.astype(np.uint16))
    return stored.astype(np.float32)


def _dtype_of(case: TinyModel, name: str) -> str:
    """The plain dtype in which a tensor is stored."""
    is_wide = case.config["model_type"] == DEEPSEEK_V4 and published_form(case.config, name) == "f32"
    return "f32" if is_wide else case.dtype


def _stored(values: NDArray[np.float32], dtype: str) -> NDArray[np.generic]:
    match dtype:
        case "bf16":
            return to_bf16(values)
        case "f16":
            return values.astype(np.float16)
        case _:
            return values


def _mixer(config: Mapping[str, Any], layer: int) -> Iterator[tuple[str, Shape]]:
    if config["model_type"] in LATENT:
        return latent_shapes(config, layer)
    if config["model_type"] == KIMI:
        return kimi_shapes(config, layer)
    if config["model_type"] == FALCON:
        return itertools.chain(_attention(config), falcon_space_shapes(config))
    if keeps_state(config, layer):
        return delta_shapes(config)
    return granite_space_shapes(config) if keeps_space(config, layer) else _attention(config)


def _attention(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    hidden, family = config["hidden_size"], config["model_type"]
    head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    if family == "phi3":
        yield "self_attn.qkv_proj.weight", (q + 2 * kv, hidden)
    else:
        biased = family in ("qwen2", "qwen2_moe") or config.get("attention_bias", False)
        gates = q if family in HYBRIDS else 0
        for name, width in (("q_proj", q + gates), ("k_proj", kv), ("v_proj", kv)):
            yield from _linear(f"self_attn.{name}", (width, hidden), biased=biased)
    out_biased = config.get("attention_bias", False) and family != "glm4_moe"
    yield from _linear("self_attn.o_proj", (hidden, q), biased=out_biased)
    if family == "gpt_oss":
        yield "self_attn.sinks", (config["num_attention_heads"],)
    normalised = ("qwen3", "qwen3_moe", "gemma3_text", "olmo2", "olmoe", *HYBRIDS)
    if family in normalised or config.get("use_qk_norm"):
        widths = (q, kv) if family in ("olmo2", "olmoe") else (head_dim, head_dim)
        yield "self_attn.q_norm.weight", (widths[0],)
        yield "self_attn.k_norm.weight", (widths[1],)


def _mlp(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    if config["model_type"] == "granitemoehybrid":
        yield from granite_dense_shapes(config)
        return
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    biased = config.get("mlp_bias", False)
    module = "feed_forward" if config["model_type"] == FALCON else "mlp"
    if config["model_type"] == "phi3":
        yield "mlp.gate_up_proj.weight", (2 * inner, hidden)
    else:
        yield from _linear(f"{module}.gate_proj", (inner, hidden), biased=biased)
        yield from _linear(f"{module}.up_proj", (inner, hidden), biased=biased)
    yield from _linear(f"{module}.down_proj", (hidden, inner), biased=biased)


def _norms(config: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    names = ["pre_ff_layernorm" if config["model_type"] == FALCON else "post_attention_layernorm"]
    if config["model_type"] != "olmo2":
        names.insert(0, "input_layernorm")
    if config["model_type"] in GEMMA:
        names.append("pre_feedforward_layernorm")
    if config["model_type"] in (*GEMMA, "olmo2"):
        names.append("post_feedforward_layernorm")
    for name in names:
        yield f"{name}.weight", (config["hidden_size"],)


def _linear(name: str, shape: Shape, *, biased: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", shape
    if biased:
        yield f"{name}.bias", shape[:1]


def _gains(config: Mapping[str, Any]) -> dict[str, float]:
    """A tied embedding is small, or each token would predict itself; Gemma multiplies it by sqrt(hidden).

    A small residual stream magnifies rounding, so these score a little lower: models of 8-bit weights must
    pass too.
    """
    if config["model_type"] in (*GEMMA, GEMMA4):
        embedding = {"embed_tokens": 0.06, "norm": 6.0}
    elif config["tie_word_embeddings"]:
        embedding = {"embed_tokens": 0.2, "embeddings": 0.2}
    else:
        return GAINS
    return {**GAINS, "q_proj": 1.3, "k_proj": 1.3, "q_norm": 1.25, "k_norm": 1.25} | embedding


def _spread_of_family(case: TinyModel, name: str, shape: Shape) -> tuple[float, float]:
    """Mean and standard deviation of a tensor."""
    if case.config["model_type"] in ENCODERS:
        return encoder_spread(name, shape)
    if case.config["model_type"] == RWKV7:
        return rwkv_spread(name, shape, case.gains)
    if case.config["model_type"] == DEEPSEEK_V4:
        return compressed_spread(name, shape, case.gains)
    return _spread(case, name, shape)


def _spread(case: TinyModel, name: str, shape: Shape) -> tuple[float, float]:
    """Mean and standard deviation of a tensor."""
    owner, kind = name.split(".")[-2:]
    of_family = GEMMA4_GAINS if case.config["model_type"] == GEMMA4 else {}
    gains = {**_gains(case.config), **EXPERT_GAINS, **of_family, **case.gains}
    gain = gains.get(owner if kind == "weight" else kind, 1.0)
    if kind in ("gate_up_proj", "down_proj"):  # matrices of all experts
        inputs = shape[-2] if case.config["model_type"] == "gpt_oss" else shape[-1]
        return 0.0, gains[f"experts.{kind}"] / math.sqrt(inputs)
    if of_family and kind in FACTORS:
        return gain, 0.2
    if kind != "weight" or owner.startswith("embed"):
        return 0.0, gain
    if owner.endswith(("norm", "norm_f")) or "layernorm" in owner:
        return gain - (case.config["model_type"] in OFFSET and not name.endswith(STATE_NORM)), 0.2
    return 0.0, gain / math.sqrt(shape[-1])
