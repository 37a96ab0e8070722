"""Vision-language models: a supported text model, and a vision tower whose outputs go among its tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from llmd.api import LeftOut, ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures import gemma3, llama, mistral, qwen2, qwen3
from llmd.builtin.architectures.config_fields import ConfigFields

VISION = LeftOut(
    "vision",
    ("vision_tower.", "vision_model.", "multi_modal_projector.", "model.connector.", "image_newline"),
)

TextPlan = Callable[[Config, int | None], ModelPlan]
Sizes = Mapping[str, int]

QWEN: Sizes = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
}
GEMMA3: Sizes = {
    "vocab_size": 262208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131072,
}
LLAMA: Sizes = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}
MISTRAL: Sizes = {
    **LLAMA,
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}

TEXT_MODELS: Mapping[str, tuple[TextPlan, Sizes]] = {
    "llama": (llama.plan, LLAMA),
    "mistral": (mistral.plan, MISTRAL),
    "qwen2": (qwen2.plan, QWEN),
    "qwen3": (qwen3.plan, QWEN),
    "gemma3_text": (gemma3.plan, GEMMA3),
}
"""The families and default sizes: transformers omits fields of ``text_config`` that equal its defaults."""
DEFAULT_EPS = 1e-6


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Plan the model in ``text_config``. Source: Liu et al. 2023, "Visual Instruction Tuning"."""
    plan_text, defaults = ConfigFields(config).inside("text_config").choice("model_type", TEXT_MODELS)
    text = plan_text({**defaults, "rms_norm_eps": DEFAULT_EPS, **config["text_config"]}, context_len)
    return msgspec.structs.replace(text, left_out=(VISION,))
