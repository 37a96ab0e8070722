"""docs/models.md names every class and every architecture of GGUF that llmd runs, and no other.

Its parsers, formats and draft heads are those that are tested.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.models.gguf.config import ENCODER
from llmd.models.gguf.families import FAMILIES
from tests.clients import families as served
from tests.docs.page import CODE, DOCS, Row, rows_with
from tests.golden import models, samples, test_draft_heads, test_mxfp4
from tests.golden.models.catalog import tiny_model
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.samples import TEMPLATES
from tests.golden.test_real_answers import WRITINGS

PAGE = (DOCS / "models.md").read_text()
ROWS = rows_with(PAGE, "tiny models")
NAMED = set(re.findall(r"`([^`]+)`", PAGE))
SUFFIXES = ("ForCausalLM", "ForConditionalGeneration", "Model")


def test_every_class_that_generates_is_listed() -> None:
    known = {name for one in llmd_architectures() for name in one.names}
    generate = {name for name in known if name.endswith(("ForCausalLM", "ForConditionalGeneration"))}
    listed = {name for name in NAMED if name.endswith(SUFFIXES)}
    assert listed - known == set()
    assert generate - listed == set()


def test_every_architecture_of_gguf_files_is_listed() -> None:
    assert {name for row in ROWS for name in CODE.findall(row["GGUF"])} == set(FAMILIES)
    assert ENCODER in NAMED


def test_the_modules_of_tiny_models_are_there() -> None:
    named = {name for row in ROWS for name in CODE.findall(row["tiny models"])}
    folder = Path(next(iter(models.__path__)))
    assert {name for name in named if not (folder / f"{name}.py").is_file()} == set()


PUBLISHED: dict[str, tuple[str, ...]] = {
    "Llama 1 to 3.3": (
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "meta-llama-Llama-3.3-70B-Instruct",
    ),
    "Mistral": (
        "Mistral-Small-3.2-24B-Instruct-2506",
        "mistralai-Ministral-3-14B-Reasoning-2512",
        "mistralai-Mistral-Nemo-Instruct-2407",
    ),
    "Qwen2": ("Qwen-Qwen2.5-7B-Instruct",),
    "Qwen3": ("Qwen-Qwen3-0.6B",),
    "Gemma 4: E2B": ("google-gemma-4-31B-it",),
    "Gemma 4: 26B-A4B": ("google-gemma-4-31B-it",),
    "Granite 3": ("ibm-granite-granite-3.3-2B-Instruct", "ibm-granite-granite-4.1"),
    "Qwen3-MoE": ("Qwen-Qwen3-0.6B", "Qwen3-Coder"),
    "GLM-4.5 to GLM-4.7": ("GLM-4.6",),
    "GLM-4.7-Flash": ("GLM-4.7-Flash",),
    "DeepSeek-V3": (
        "deepseek-ai-DeepSeek-V3.1",
        "llama-cpp-deepseek-r1",
        "moonshotai-Kimi-K2",
    ),
    "DeepSeek-V3.2": ("deepseek-ai-DeepSeek-V3.2",),
    "DeepSeek-V4": ("deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731"),
    "gpt-oss": ("openai-gpt-oss-120b",),
    "Qwen3.5": ("Qwen3.5-4B",),
    "Kimi Linear": ("moonshotai-Kimi-K2",),
    "Granite 4.0": ("ibm-granite-granite-4.0",),
    "Nemotron-H": ("NVIDIA-Nemotron-Nano-v2",),
    "Nemotron 3": ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",),
}
"""Templates by what a row of the page begins with, up to a comma. Kimi Linear's is written like Kimi K2's."""
WRITES_NO_CALLS = {"ibm-granite-granite-3.3-2B-Instruct"}


def begin_of(row: Row) -> str:
    return row["family"].partition(",")[0]


def parser_of(template: str) -> str:
    """The parser of calls that a template gets."""
    source = samples.named(TEMPLATES / f"{template}.jinja").read_text(encoding="utf-8")
    found = max((one for one in llmd_parsers() if one.reads == "calls"), key=lambda one: one.matches(source))
    return found.name if found.matches(source) else "none"


@pytest.mark.parametrize("row", ROWS, ids=[row["family"] for row in ROWS])
def test_tools_are_the_parsers_that_published_templates_get(row: Row) -> None:
    templates = PUBLISHED.get(begin_of(row), ())
    assert set(CODE.findall(row["tools"])) == set(map(parser_of, templates))
    assert (row["tools"] == "–") == (not templates)


def test_what_these_templates_write_is_read_and_most_were_served() -> None:
    tried = {template for templates in PUBLISHED.values() for template in templates}
    assert PUBLISHED.keys() == {begin_of(row) for row in ROWS if row["tools"] != "–"}
    assert tried - WRITES_NO_CALLS == set(WRITINGS)
    assert len({family.template.stem for family in served.FAMILIES} & tried) > len(tried) / 2


@pytest.mark.parametrize(
    ("word", "cases"),
    [
        ("FP8", FP8_CASES),
        ("NVFP4", NVFP4_CASES),
        ("MXFP4", test_mxfp4.MXFP4_CASES),
        ("draft head", [tiny_model(name) for name in test_draft_heads.FAMILIES]),
    ],
)
def test_formats_and_draft_heads_are_those_of_tiny_models(word: str, cases: list[TinyModel]) -> None:
    rows = [row for row in ROWS if word in row["tried with"].split(", ")]
    named = {name for row in rows for name in CODE.findall(row["class"])}
    assert named == {case.config["architectures"][0] for case in cases}
    # Nemotron-H and Nemotron 3 have one class: only the latter has experts.
    assert not any(begin_of(row) == "Nemotron-H" for row in rows)
