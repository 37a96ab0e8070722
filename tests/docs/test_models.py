"""docs/models.md names every class and every architecture of GGUF that llmd runs, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.gguf.config import ENCODER
from llmd.models.gguf.families import FAMILIES
from tests.golden import models

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
NAMED = set(re.findall(r"`([^`]+)`", PAGE))
SUFFIXES = ("ForCausalLM", "ForConditionalGeneration", "Model")


def test_every_class_that_generates_is_listed() -> None:
    known = {name for one in llmd_architectures() for name in one.names}
    generate = {name for name in known if name.endswith(("ForCausalLM", "ForConditionalGeneration"))}
    listed = {name for name in NAMED if name.endswith(SUFFIXES)}
    assert listed - known == set()
    assert generate - listed == set()


def test_every_architecture_of_gguf_files_is_listed() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("|")]
    listed = {row[3].strip().strip("`") for row in rows[1:]} - {"GGUF", "---", ""}
    assert listed == set(FAMILIES)
    assert ENCODER in NAMED


def test_the_modules_of_tiny_models_are_there() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("|")]
    named = {row[5].strip().strip("`") for row in rows} - {"tiny models", "---"}
    folder = Path(next(iter(models.__path__)))
    assert {name for name in named if not (folder / f"{name}.py").is_file()} == set()
