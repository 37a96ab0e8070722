"""The parsers that llmd chooses for the chat templates of seventy published models."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api.parsing import CallFormat, ReasoningMarks
from llmd.api.plugins import Parser
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.chat.answers.answer_formats import FALLBACK, ParserChoice, choose_formats
from tests.golden import samples
from tests.golden.samples import FIX, TEMPLATES

CHOSEN: dict[str, tuple[str, str]] = {
    "Apertus-8B-Instruct": ("none", "none"),
    "Apriel-1.6-15b-Thinker-fixed": ("none", "none"),
    "Bielik-11B-v3.0-Instruct": ("hermes", "think"),
    "ByteDance-Seed-OSS": ("none", "seed_think"),
    "Cohere2MoE": ("none", "none"),
    "CohereForAI-c4ai-command-r-plus-tool_use": ("none", "none"),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("none", "none"),
    "GLM-4.6": ("glm45", "think"),
    "GLM-4.7-Flash": ("glm45", "think"),
    "GigaChat3-10B-A1.8B": ("none", "none"),
    "GigaChat3.1-10B-A1.8B": ("none", "none"),
    "HuggingFaceTB-SmolLM3-3B": ("none", "think"),
    "Kimi-K2-Instruct": ("kimi_k2", "none"),
    "Kimi-K2-Thinking": ("kimi_k2", "think"),
    "Kimi-K3": ("none", "none"),
    "LFM2-8B-A1B": ("none", "none"),
    "LFM2.5-8B-A1B": ("none", "think"),
    "LFM2.5-Instruct": ("none", "think"),
    "MiMo-VL": ("hermes", "none"),
    "MiniMax-M1": ("none", "none"),
    "MiniMax-M2": ("none", "think"),
    "MiniMax-M3": ("hermes", "none"),
    "Mistral-Small-3.2-24B-Instruct-2506": ("mistral_v11", "none"),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("qwen3_coder", "think"),
    "NVIDIA-Nemotron-Nano-v2": ("nemotron_json", "think"),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("hermes", "none"),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": ("hermes", "none"),
    "Qwen-QwQ-32B": ("hermes", "think"),
    "Qwen-Qwen2.5-7B-Instruct": ("hermes", "none"),
    "Qwen-Qwen3-0.6B": ("hermes", "think"),
    "Qwen3-Coder": ("qwen3_coder", "none"),
    "Qwen3.5-4B": ("qwen3_coder", "think"),
    "Reka-Edge": ("hermes", "think"),
    "Spark2.5": ("glm45", "think"),
    "StepFun3.5-Flash": ("qwen3_coder", "think"),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("deepseek_v3", "think"),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("deepseek_v3", "think"),
    "deepseek-ai-DeepSeek-V3.1": ("deepseek_v31", "think"),
    "deepseek-ai-DeepSeek-V3.2": ("deepseek_v32", "think"),
    "deepseek-ai-DeepSeek-V4-Flash-0731": ("deepseek_v4", "think"),
    "deepseek-ai-DeepSeek-V4": ("deepseek_v4", "think"),
    "fireworks-ai-llama-3-firefunction-v2": ("none", "none"),
    "google-gemma-2-2b-it": ("none", "none"),
    "google-gemma-4-31B-it-interleaved": ("gemma4", "gemma4_thought"),
    "google-gemma-4-31B-it": ("gemma4", "gemma4_thought"),
    "ibm-granite-granite-3.3-2B-Instruct": ("granite", "think"),
    "ibm-granite-granite-4.0": ("hermes", "none"),
    "ibm-granite-granite-4.1": ("hermes", "none"),
    "inclusionai-ling-3.0-flash": ("glm45", "think"),
    "llama-cpp-deepseek-r1": ("deepseek_v3", "think"),
    "llama-cpp-rwkv-world": ("none", "think"),
    "meetkai-functionary-medium-v3.1": ("none", "none"),
    "meetkai-functionary-medium-v3.2": ("none", "none"),
    "meta-llama-Llama-3.1-8B-Instruct": ("llama3_json", "none"),
    "meta-llama-Llama-3.2-3B-Instruct": ("llama3_json", "none"),
    "meta-llama-Llama-3.3-70B-Instruct": ("llama3_json", "none"),
    "microsoft-Phi-3.5-mini-instruct": ("none", "none"),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("mistral_v11", "mistral_think"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("mistral", "none"),
    "moonshotai-Kimi-K2": ("kimi_k2", "none"),
    "muse-glimmer": ("none", "none"),
    "openai-gpt-oss-120b": ("harmony", "harmony_analysis"),
    "openbmb-MiniCPM5-1B": ("none", "think"),
    "poolside-Laguna-S-2.1": ("glm45", "think"),
    "poolside-Laguna-XS-2.1": ("glm45", "think"),
    "poolside-Laguna-XS.2": ("glm45", "think"),
    "tencent-Hy3": ("none", "none"),
    "unsloth-Apriel-1.5": ("hermes", "none"),
    "unsloth-mistral-Devstral-Small-2507": ("mistral_v11", "none"),
    "upstage-Solar-Open-100B": ("none", "none"),
}
"""By template: the parsers of calls and of reasoning. If none of calls fits, ``hermes`` is loaded. It fits
MiniMax-M3 by accident: no parser reads the forms of MiniMax.
"""
SHOW_NO_TOOLS = {
    "HuggingFaceTB-SmolLM3-3B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "fireworks-ai-llama-3-firefunction-v2",
    "google-gemma-2-2b-it",
    "llama-cpp-rwkv-world",
    "microsoft-Phi-3.5-mini-instruct",
}
"""Templates that write nothing of the tools of a request."""
each_template = pytest.mark.parametrize("name", CHOSEN)


def source_of(name: str) -> str:
    return samples.named(TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def recorded(parser: Parser, loaded: list[Parser]) -> Parser:
    """The parser; it is added to ``loaded`` when llmd loads it."""

    def load() -> CallFormat | ReasoningMarks:
        loaded.append(parser)
        return parser.load()

    return msgspec.structs.replace(parser, load=load)


def test_every_fetched_template_is_listed() -> None:
    assert {path.stem for path in TEMPLATES.glob("*.jinja")} == set(CHOSEN), FIX


@each_template
def test_a_template_gets_the_parsers_of_its_family(name: str) -> None:
    source, loaded = source_of(name), list[Parser]()
    choose_formats(
        ParserChoice({parser.name: recorded(parser, loaded) for parser in llmd_parsers()}), [source]
    )
    by_template = {parser.reads: parser.name for parser in loaded if parser.matches(source)}
    assert (by_template.get("calls", "none"), by_template.get("reasoning", "none")) == CHOSEN[name]
    assert {parser.name for parser in loaded if not parser.matches(source)} <= {FALLBACK}


@each_template
def test_tools_are_told_in_the_system_message_only_if_the_template_shows_none(name: str) -> None:
    formats = choose_formats(ParserChoice(), [source_of(name)])
    assert formats.tools_go == ("text" if name in SHOW_NO_TOOLS else "template")
