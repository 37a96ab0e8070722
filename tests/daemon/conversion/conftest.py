"""The built-in architectures, and a model with a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from llmd.api import Architecture
from llmd.builtin.architectures.plugin import llmd_architectures
from tests.serving.model import SPECIALS, write_model

EXTRA = 259


@pytest.fixture(scope="session")
def architectures() -> Mapping[str, Architecture]:
    return {name: found for found in llmd_architectures() for name in found.names}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A tiny f32 model with a template, three special tokens, and a tokenizer that merges two spaces."""
    directory = write_model(tmp_path / "model", extra_specials=("<extra>",))
    stated = json.loads((directory / "tokenizer.json").read_text())
    stated["added_tokens"].pop()
    stated["model"]["vocab"] |= {"ĠĠ": EXTRA, **{text: 256 + place for place, text in enumerate(SPECIALS)}}
    stated["model"]["merges"] = [["Ġ", "Ġ"]]
    (directory / "tokenizer.json").write_text(json.dumps(stated))
    config = json.loads((directory / "tokenizer_config.json").read_text())
    del config["added_tokens_decoder"][str(EXTRA)]
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory
