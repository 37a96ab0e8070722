"""A model is found by name and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError, NotFoundError
from llmd.api.messages import Load
from llmd.builtin.guide import guide_directory
from llmd.embedded.opening import find_model, load_stored, user_directories
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from tests.serving.model import write_model


def test_finds_the_guide_stored_names_and_directories(user: Path, directory: Path) -> None:
    directories = user_directories()
    write_model(directories.models / "stored")
    assert find_model("guide", directories)[0].directory == guide_directory()
    assert find_model("stored", directories)[0].directory == directories.models / "stored"
    assert find_model(str(directory), directories)[0].directory == directory
    with pytest.raises(NotFoundError):
        find_model("nowhere/at/all", directories)


def test_a_derived_model_is_found_with_its_changes(user: Path) -> None:
    directories = user_directories()
    record = DerivedModel(base="guide", created=0.0, system="Be brief.")
    Store(directories.models, {}).derived.save("brief", record)
    model, changes = find_model("brief", directories)
    assert (model.name, model.directory, changes) == ("brief", guide_directory(), record)


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
