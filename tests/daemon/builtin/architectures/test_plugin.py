from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from llmd.api import ModelError
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.config_form import ConfigForm
from llmd.models.json_file import converted
from tests.golden.models import encoders
from tests.golden.models.catalog import CASES, tiny_model

FAMILIES = (
    "llama3-gqa-tied",
    "mistral-window",
    "qwen2-tied",
    "qwen3-tied",
    "phi4-mini-long",
    "gemma2",
    "gemma3-linear-rope",
    "gemma4-per-layer",
    "gemma4-moe",
    "granite",
    "olmo2",
    "mixtral",
    "qwen2-moe",
    "qwen3-moe",
    "olmoe",
    "granite-moe-shared",
    "glm4-moe-groups",
    "glm4-moe-lite",
    "deepseek-v2-groups",
    "deepseek-v3-halves",
    "gpt-oss",
    "qwen3-next-odd",
    "qwen3-5-moe",
    "granite-hybrid",
    "granite-hybrid-moe",
    "nemotron-h-moe",
    "mamba2-odd",
)
CONFIGS: dict[str, Mapping[str, Any]] = {
    "gemma3 that sees": {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": dict(tiny_model("gemma3").config),
    },
    **{name: tiny_model(name).config for name in FAMILIES},
    "bert": encoders.bert("BertForSequenceClassification"),
    "xlm-roberta": encoders.roberta("XLMRobertaForSequenceClassification"),
}
JUNK: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    1.5,
    True,
    "x",
    [],
    [1, "x"],
    {},
    {"type": "x"},
    10**30,
    float("nan"),
)


def test_every_name_belongs_to_one_architecture() -> None:
    names = [name for architecture in llmd_architectures() for name in architecture.names]
    assert len(set(names)) == len(names)


def test_models_are_known_by_class_and_by_type() -> None:
    names = {name for architecture in llmd_architectures() for name in architecture.names}
    for case in CASES:
        assert {*case.config["architectures"], case.config["model_type"]} <= names


def test_a_class_named_model_is_the_family_without_its_head() -> None:
    known = {one: architecture for architecture in llmd_architectures() for one in architecture.names}
    for case in CASES:
        (name,) = case.config["architectures"]
        text_models = {
            "gemma3_text": "Gemma3TextModel",
            "gemma4_text": "Gemma4TextModel",
            "qwen3_5_text": "Qwen3_5TextModel",
            "qwen3_5_moe_text": "Qwen3_5MoeTextModel",
        }
        bare = text_models.get(case.config["model_type"], name.replace("ForCausalLM", "Model"))
        plan = known[bare].plan({**case.config, "architectures": [bare]}, None)
        assert not plan.has_head
        assert plan.num_layers == known[name].plan(case.config, None).num_layers


def test_describing_imports_no_family_and_no_numpy() -> None:
    code = (
        "import sys; from llmd.builtin.architectures.plugin import llmd_architectures; llmd_architectures();"
        "print([m for m in sys.modules if m in ('numpy', 'llmd.builtin.architectures.llama')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def damaged(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the configuration with each field, including nested ones, replaced by each piece of junk."""
    for name, value in config.items():
        for junk in JUNK:
            yield {**config, name: junk}
        if isinstance(value, dict):
            yield from ({**config, name: inner} for inner in damaged(value))


@pytest.mark.parametrize("name", CONFIGS)
def test_junk_in_any_field_gives_a_plan_or_a_typed_error(name: str) -> None:
    right = CONFIGS[name]
    known = {one: architecture for architecture in llmd_architectures() for one in architecture.names}
    refusals: list[ModelError] = []
    for config in damaged(dict(right)):
        try:
            converted(config, ConfigForm, file="config.json")  # as any reader of the file does
            known[right["architectures"][0]].plan(config, None)
        except ModelError as error:
            refusals.append(error)
    assert len(refusals) > 100
    assert all(error.hint for error in refusals)
