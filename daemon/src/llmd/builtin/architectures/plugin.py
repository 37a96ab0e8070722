"""Entry point of the built-in architectures. A family's module is imported when its first model is planned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from llmd.api import Architecture, hookimpl

if TYPE_CHECKING:
    from llmd.api import ModelPlan
    from llmd.api.plugins import Config

LLMD_API = 1

FAMILIES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "mistral": ("MistralForCausalLM", "mistral"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "phi3": ("Phi3ForCausalLM", "phi3"),
    "gemma2": ("Gemma2ForCausalLM", "gemma2"),
    "gemma3": ("Gemma3ForCausalLM", "gemma3_text"),
    "granite": ("GraniteForCausalLM", "granite"),
    "olmo2": ("Olmo2ForCausalLM", "olmo2"),
}
"""Module of each family and the names that configurations give it."""


@hookimpl
def llmd_architectures() -> Sequence[Architecture]:
    return [Architecture(names=names, plan=partial(_plan, family)) for family, names in FAMILIES.items()]


def _plan(family: str, config: Config, context_len: int | None) -> ModelPlan:
    module = import_module(f"llmd.builtin.architectures.{family}")
    plan: ModelPlan = module.plan(config, context_len)
    return plan
