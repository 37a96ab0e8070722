from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.shards import find_shards
from llmd.models.weight_source import CheckpointSource
from tests.corrupt.small_model import SINGLE
from tests.golden.checkpoint import Tensors, write_safetensors, write_shards

UP = "model.layers.0.mlp.experts.{}.up_proj.weight"
STACK = UP.format("*")
ROWS = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)


def experts() -> dict[str, np.ndarray]:
    """Three matrices, in another order than that of their numbers."""
    return {UP.format(number): ROWS[number] for number in (2, 0, 1)}


def opened(directory: Path, tensors: Tensors) -> Checkpoint:
    write_safetensors(directory / SINGLE, tensors, {})
    return Checkpoint.open(find_shards(directory))


def whole(checkpoint: Checkpoint) -> list[list[float]]:
    """Return the matrices one below the other."""
    stack = TensorRef(STACK, (3, 4, 5), is_stack=True)
    rows: list[list[float]] = CheckpointSource(checkpoint).read(Weight(stack, "f32")).data.tolist()
    return rows


def test_tensors_of_experts_are_joined_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    with opened(tmp_path, experts() | {"norm": np.ones(5, np.float32)}) as checkpoint:
        assert set(checkpoint.tensors) == {STACK, "norm"}
        stack = checkpoint.tensors[STACK]
        assert (stack.shape, stack.format, stack.size_bytes) == ((3, 4, 5), "f32", ROWS.nbytes)
        assert whole(checkpoint) == ROWS.reshape(12, 5).tolist()
        assert checkpoint.num_parameters == ROWS.size + 5


def test_experts_may_be_in_several_files(tmp_path: Path) -> None:
    write_shards(tmp_path, experts(), 2)
    with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
        assert whole(checkpoint) == ROWS.reshape(12, 5).tolist()
        assert checkpoint.notices == ()


def test_a_missing_expert_is_named(tmp_path: Path) -> None:
    tensors = experts()
    del tensors[UP.format(1)]
    with pytest.raises(CheckpointError, match="expert 1 is missing") as raised:
        opened(tmp_path, tensors)
    assert UP.format(1) in str(raised.value)


@pytest.mark.parametrize("odd", [np.zeros((4, 6), np.float32), np.zeros((4, 5), np.float16)])
def test_experts_must_be_alike(tmp_path: Path, odd: np.ndarray) -> None:
    with pytest.raises(CheckpointError, match=r"experts\.1\.up_proj"):
        opened(tmp_path, experts() | {UP.format(1): odd})


def test_one_expert_is_read_without_a_copy(tmp_path: Path) -> None:
    with opened(tmp_path, experts()) as checkpoint:
        source = CheckpointSource(checkpoint)
        stack = TensorRef(STACK, (3, 4, 5), is_stack=True)
        one = source.read(Weight(stack.member(2), "f32")).data
        assert one.tolist() == ROWS[2].tolist()
        assert np.shares_memory(one, checkpoint.view(UP.format(2)))


def test_rows_of_some_experts_are_cut_in_either_form(tmp_path: Path) -> None:
    """One tensor for each expert, or one for all: the same part of the same numbers."""
    expected = ROWS[1:, 1::2].reshape(-1, 5).tolist()
    for name, tensors in ((STACK, experts()), ("experts.up", {"experts.up": ROWS})):
        ref = TensorRef(name, (3, 4, 5), rows=(1, 2), period=2, is_stack=True, members=(1, 3))
        with opened(tmp_path, tensors) as checkpoint:
            assert CheckpointSource(checkpoint).read(Weight(ref, "f32")).data.tolist() == expected


def test_experts_are_read_ahead_in_the_order_of_the_file(tmp_path: Path) -> None:
    with opened(tmp_path, experts()) as checkpoint:
        source = CheckpointSource(checkpoint)
        stack = TensorRef(STACK, (3, 4, 5), is_stack=True)
        weights = [Weight(stack.member(number), "q8_g32") for number in range(3)]
        with source.reading_ahead(weights) as order:
            assert list(order) == [2, 0, 1]
            codes = [source.read(weights[place]).data for place in order]
        assert [part.shape for part in codes] == [(4, 5)] * 3
