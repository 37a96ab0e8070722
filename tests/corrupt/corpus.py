"""Every damaged model, and the way by which the engine would come upon it."""

from __future__ import annotations

from pathlib import Path

from llmd.api import Architecture, ModelPlan
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.chat.tokenizers.tokenizer import check_vocab_size
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.models.open_model import open_model
from tests.corrupt import config_cases, gguf_cases, index_cases, safetensors_cases, tokenizer_cases
from tests.corrupt.untouchable import map_untouchable

CASES = (
    safetensors_cases.CASES
    + index_cases.CASES
    + config_cases.CASES
    + gguf_cases.CASES
    + tokenizer_cases.CASES
)


def inspect_model(directory: Path) -> ModelPlan:
    """Do all that is done before a weight is read; where one is read, a TypeError tells."""
    opened = open_model(directory, known_architectures(), mapper=map_untouchable)
    with opened.checkpoint:
        check_vocab_size(load_tokenizer(directory), opened.plan.vocab_size)
    return opened.plan


def known_architectures() -> dict[str, Architecture]:
    return {name: architecture for architecture in llmd_architectures() for name in architecture.names}
