"""Entry point of the built-in architectures. Modules are imported when a model of the family is planned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from llmd.api import Architecture, hookimpl

if TYPE_CHECKING:
    from llmd.api import ModelPlan
    from llmd.api.plugins import Config

LLMD_API = 2

FAMILIES = {
    "llama": ("LlamaForCausalLM", "LlamaModel", "llama"),
    "mistral": ("MistralForCausalLM", "MistralModel", "mistral"),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Model", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Model", "qwen3"),
    "mixtral": ("MixtralForCausalLM", "MixtralModel", "mixtral"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeModel", "qwen2_moe"),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeModel", "qwen3_moe"),
    "olmoe": ("OlmoeForCausalLM", "OlmoeModel", "olmoe"),
    "granite_moe": (
        "GraniteMoeForCausalLM",
        "GraniteMoeModel",
        "granitemoe",
        "GraniteMoeSharedForCausalLM",
        "GraniteMoeSharedModel",
        "granitemoeshared",
    ),
    "granite_hybrid": ("GraniteMoeHybridForCausalLM", "GraniteMoeHybridModel", "granitemoehybrid"),
    "nemotron_h": ("NemotronHForCausalLM", "NemotronHModel", "nemotron_h"),
    "falcon_h1": ("FalconH1ForCausalLM", "FalconH1Model", "falcon_h1"),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Model", "mamba2"),
    "kimi_linear": ("KimiLinearForCausalLM", "KimiLinearModel", "kimi_linear"),
    "rwkv7": ("RWKV7ForCausalLM", "RWKV7Model", "rwkv7"),
    "glm4_moe": ("Glm4MoeForCausalLM", "Glm4MoeModel", "glm4_moe"),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", "Glm4MoeLiteModel", "glm4_moe_lite"),
    "deepseek_v2": ("DeepseekV2ForCausalLM", "DeepseekV2Model", "deepseek_v2"),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Model", "deepseek_v3"),
    "deepseek_v32": ("DeepseekV32ForCausalLM", "DeepseekV32Model", "deepseek_v32"),
    "deepseek_v4": ("DeepseekV4ForCausalLM", "DeepseekV4Model", "deepseek_v4"),
    "glm_moe_dsa": ("GlmMoeDsaForCausalLM", "GlmMoeDsaModel", "glm_moe_dsa"),
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextModel", "qwen3_next"),
    "qwen3_5": (
        "Qwen3_5ForCausalLM",
        "Qwen3_5TextModel",
        "qwen3_5_text",
        "Qwen3_5ForConditionalGeneration",
        "qwen3_5",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeTextModel",
        "qwen3_5_moe_text",
        "Qwen3_5MoeForConditionalGeneration",
        "qwen3_5_moe",
    ),
    "gpt_oss": ("GptOssForCausalLM", "GptOssModel", "gpt_oss"),
    "phi3": ("Phi3ForCausalLM", "Phi3Model", "phi3"),
    "phi4_multimodal": (
        "Phi4MMForCausalLM",
        "phi4mm",
        "Phi4MultimodalForCausalLM",
        "phi4_multimodal",
    ),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Model", "gemma2"),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextModel", "gemma3_text"),
    "gemma4": (
        "Gemma4ForCausalLM",
        "Gemma4TextModel",
        "gemma4_text",
        "Gemma4ForConditionalGeneration",
        "gemma4",
        "Gemma4UnifiedForCausalLM",
        "Gemma4UnifiedTextModel",
        "gemma4_unified_text",
        "Gemma4UnifiedForConditionalGeneration",
        "gemma4_unified",
    ),
    "vision_language": (
        "Gemma3ForConditionalGeneration",
        "gemma3",
        "Idefics3ForConditionalGeneration",
        "idefics3",
        "InternVLForConditionalGeneration",
        "internvl",
        "LlavaForConditionalGeneration",
        "llava",
        "LlavaNextForConditionalGeneration",
        "llava_next",
        "Mistral3ForConditionalGeneration",
        "mistral3",
        "SmolVLMForConditionalGeneration",
        "smolvlm",
    ),
    "granite": ("GraniteForCausalLM", "GraniteModel", "granite"),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Model", "olmo2"),
    "bert": ("BertModel", "BertForMaskedLM", "BertForSequenceClassification", "bert"),
    "roberta": (
        "RobertaModel",
        "RobertaForMaskedLM",
        "RobertaForSequenceClassification",
        "XLMRobertaModel",
        "XLMRobertaForMaskedLM",
        "XLMRobertaForSequenceClassification",
        "roberta",
        "xlm-roberta",
    ),
}
"""The module of each family, and its names in configurations. A class whose name ends in Model has no head.

Encoders always embed: a head for predicting masked tokens is left out.
"""


@hookimpl
def llmd_architectures() -> Sequence[Architecture]:
    return [Architecture(names=names, plan=partial(_plan, family)) for family, names in FAMILIES.items()]


def _plan(family: str, config: Config, context_len: int | None) -> ModelPlan:
    module = import_module(f"llmd.builtin.architectures.{family}")
    plan: ModelPlan = module.plan(config, context_len)
    return _without_head(plan) if _is_bare(config) else plan


def _is_bare(config: Config) -> bool:
    from llmd.models.class_names import named_class

    return named_class(config).endswith("Model")


def _without_head(plan: ModelPlan) -> ModelPlan:
    from llmd.models.headless import without_head

    return without_head(plan)
