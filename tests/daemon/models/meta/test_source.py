from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import CheckpointError, ModelError
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.meta.source import MetaSource
from llmd.models.open_model import open_model
from tests.corrupt.untouchable import map_untouchable
from tests.golden.checkpoint import read_safetensors, write_safetensors
from tests.golden.meta_layout import write_meta, write_mistral
from tests.golden.models.catalog import tiny_model

ARCHITECTURES = {name: known for known in llmd_architectures() for name in known.names}
LLAMA = tiny_model("llama2-mha")
JUNK: tuple[Any, ...] = (None, -1, 0, 1, 1.5, True, "x", [], {}, {"type": "x"}, 10**30, 1e300)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_meta(LLAMA, tmp_path / "llama")


def change(directory: Path, **fields: Any) -> None:
    path = directory / "params.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_directory_with_parameters_is_found(directory: Path, tmp_path: Path) -> None:
    source = MetaSource.find(directory)
    assert source is not None
    assert source.config_file == directory / "params.json"
    assert source.has_weights
    assert MetaSource.find(tmp_path) is None


def test_an_open_vocabulary_has_the_size_of_the_embedding(directory: Path) -> None:
    assert MetaSource(directory).read_config()["vocab_size"] == LLAMA.config["vocab_size"]
    change(directory, vocab_size=77)
    assert MetaSource(directory).read_config()["vocab_size"] == 77


def test_an_open_vocabulary_without_an_embedding_is_refused(directory: Path) -> None:
    path = directory / "consolidated.00.safetensors"
    tensors, _ = read_safetensors(path)
    write_safetensors(path, {"norm.weight": tensors["norm.weight"]}, {})
    with pytest.raises(CheckpointError, match="vocab_size is not stated") as caught:
        MetaSource(directory).read_config()
    assert caught.value.file == str(directory / "params.json")


@pytest.mark.parametrize("write", [write_meta, write_mistral])
def test_a_model_is_opened_without_reading_a_weight(write: Any, tmp_path: Path) -> None:
    opened = open_model(write(LLAMA, tmp_path / "model"), ARCHITECTURES, mapper=map_untouchable)
    with opened.checkpoint:
        assert opened.notices == ()
        assert opened.plan.tensor_refs()[0].name == "tok_embeddings.weight"
        assert opened.plan.max_context_len == LLAMA.config["max_position_embeddings"]


@pytest.mark.parametrize("write", [write_meta, write_mistral])
def test_junk_in_any_field_opens_or_gives_a_typed_error(write: Any, tmp_path: Path) -> None:
    directory = write(LLAMA, tmp_path / "model")
    right = json.loads((directory / "params.json").read_text())
    refusals: list[ModelError] = []
    for name in right:
        for junk in JUNK:
            change(directory, **{**right, name: junk})
            try:
                open_model(directory, ARCHITECTURES).checkpoint.close()
            except ModelError as error:
                refusals.append(error)
    assert len(refusals) > 50
    assert all(error.hint and str(directory) in error.message for error in refusals)


def test_what_mistrals_models_see_with_is_left_out_and_said(directory: Path) -> None:
    change(directory, vision_encoder={"hidden_size": 8})
    path = directory / "consolidated.00.safetensors"
    tower = {"vision_encoder.transformer.layers.0.attention.wq.weight": np.zeros((2, 2), np.float32)}
    write_safetensors(path, read_safetensors(path)[0] | tower, {})
    opened = open_model(directory, ARCHITECTURES)
    with opened.checkpoint:
        assert opened.notices == ("1 tensors for vision are left out: llmd runs only the text model",)


def test_weights_of_another_width_are_named_as_they_are_stored(directory: Path) -> None:
    change(directory, ffn_dim_multiplier=2.0)
    with pytest.raises(CheckpointError, match="the configuration asks for") as caught:
        open_model(directory, ARCHITECTURES)
    assert caught.value.tensor == "layers.0.feed_forward.w1.weight"
    assert caught.value.file == str(directory / "consolidated.00.safetensors")
