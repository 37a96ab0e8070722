from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import ModelPlan
from llmd.models.hugging_face import HuggingFaceSource
from tests.corrupt import small_model
from tests.corrupt.untouchable import map_untouchable


def test_a_directory_with_a_configuration_is_found(model_directory: Path, tmp_path: Path) -> None:
    source = HuggingFaceSource.find(model_directory)
    assert source is not None
    assert source.config_file == model_directory / "config.json"
    assert source.read_config() == small_model.CONFIG
    assert HuggingFaceSource.find(tmp_path) is None


@pytest.mark.parametrize("name", [small_model.SINGLE, small_model.INDEX])
def test_a_single_file_and_an_index_are_weights(name: str, tmp_path: Path) -> None:
    source = HuggingFaceSource(tmp_path)
    (tmp_path / "other.safetensors").touch()
    assert not source.has_weights
    (tmp_path / name).touch()
    assert source.has_weights


def test_tensors_have_the_names_of_the_plan_or_lack_their_prefix(
    model_directory: Path, plan: ModelPlan
) -> None:
    source = HuggingFaceSource(model_directory)
    with source.open_checkpoint(mapper=map_untouchable) as checkpoint:
        assert source.with_stored_names(plan, checkpoint.tensors) is plan
    bare = {name.removeprefix("model.") for name in small_model.shapes()}
    assert source.with_stored_names(plan, bare).tensor_refs()[0].name == "embed_tokens.weight"
