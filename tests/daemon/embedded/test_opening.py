"""A model is found by name and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError, NotFoundError
from llmd.api.messages import Load
from llmd.builtin.guide import guide_directory
from llmd.embedded.opening import find_model, load_stored, user_directories
from tests.serving.model import write_model


def test_finds_the_guide_stored_names_and_directories(user: Path, directory: Path) -> None:
    directories = user_directories()
    write_model(directories.models / "stored")
    assert find_model("guide", directories).directory == guide_directory()
    assert find_model("stored", directories).directory == user / "data" / "llmd" / "models" / "stored"
    assert find_model(str(directory), directories).directory == directory
    with pytest.raises(NotFoundError):
        find_model("nowhere/at/all", directories)


def test_loads_on_the_device_that_is_named(directory: Path) -> None:
    model = load_stored(Load(str(directory), device="reference"), user_directories())
    assert model.loaded.stages[0].device == "reference"
    model.close()


def test_a_broken_model_is_told(directory: Path, tmp_path: Path) -> None:
    broken = write_model(tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load_stored(Load(str(broken), device="reference"), user_directories())
