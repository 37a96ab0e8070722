"""Another process makes the same weights from a recipe."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from llmd.api import TensorRef, Weight
from llmd.models.model_source import find_source
from llmd.models.source_recipe import HasRecipe
from llmd.models.weight_source import CheckpointSource
from llmd.testing.sources import RandomSource
from tests.serving.model import write_model


def test_a_checkpoint_is_opened_again(tmp_path: Path) -> None:
    directory = write_model(tmp_path)
    with find_source(directory).open_checkpoint() as checkpoint:
        tensor = next(one for one in checkpoint.tensors.values() if one.format == "f32")
        weight = Weight(TensorRef(tensor.name, tensor.shape), "f32")
        source = CheckpointSource(checkpoint, tmp_path / "packed", None, directory)
        assert isinstance(source, HasRecipe)
        again = source.recipe.make(None)
        assert isinstance(again, CheckpointSource)
        assert again.packed == source.packed
        assert np.array_equal(again.read(weight).data, source.read(weight).data)
        again.close()
        again = CheckpointSource(checkpoint, None, None, directory).recipe.make(None)
        assert isinstance(again, CheckpointSource)
        assert again.packed is None
        again.close()


def test_random_weights_are_drawn_again() -> None:
    weight = Weight(TensorRef("w", (3, 4)), "f32")
    source = RandomSource(5)
    assert np.array_equal(source.recipe.make(None).read(weight).data, source.read(weight).data)
