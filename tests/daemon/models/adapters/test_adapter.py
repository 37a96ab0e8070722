"""An adapter as a file of a checkpoint: its tensors have names of its own, and the model's order of rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.adapters.adapter import Adapter, AsTrained, Change, check_pairs
from llmd.models.safetensors import SafetensorsFile
from tests.golden.checkpoint import write_safetensors

A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(8, dtype=np.float32).reshape(4, 2)


def file_of(folder: Path) -> SafetensorsFile:
    write_safetensors(folder / "adapter.safetensors", {"a": A, "b": B}, {})
    return SafetensorsFile.open(folder / "adapter.safetensors")


def test_rows_of_the_second_matrix_have_the_order_of_the_model(tmp_path: Path) -> None:
    change = Change("a", "b", 2, 0.5, lambda rows: rows[::-1])
    with closing(Adapter("sql", file_of(tmp_path), {"q": change})) as adapter:
        assert list(adapter.header.entries) == ["sql: a", "sql: b"]
        assert adapter.entry("b").shape == (4, 2)
        np.testing.assert_array_equal(adapter.view("sql: a"), A)
        np.testing.assert_array_equal(adapter.view("sql: b"), B[::-1])


def test_a_model_that_is_stored_as_trained_has_the_names_and_the_order_of_adapters() -> None:
    form = AsTrained()
    assert form.module("model.layers.0.mlp.up_proj") == "model.layers.0.mlp.up_proj"
    assert form.row_order("model.layers.0.self_attn.q_proj") is None


def test_each_pair_must_be_whole(tmp_path: Path) -> None:
    with file_of(tmp_path) as file:
        check_pairs(file, {"q": ("a", "b")})
        with pytest.raises(CheckpointError, match="c: the tensor is missing"):
            check_pairs(file, {"q": ("a", "c")})
        with pytest.raises(CheckpointError, match="has no tensors"):
            check_pairs(file, {})
