from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.shards import find_shards
from llmd.models.split_formats import mxfp4_blocks, split_blocks
from llmd.models.weight_source import CheckpointSource
from tests.corrupt.small_model import SINGLE
from tests.golden.checkpoint import Tensors, write_safetensors
from tests.golden.mxfp4 import mxfp4_bytes, with_mxfp4_as_numbers

NAME = "model.layers.0.mlp.experts.gate_up_proj"
CODES, SCALES = f"{NAME}_blocks", f"{NAME}_scales"
SHAPE = (3, 10, 64)
STORED = {CODES: mxfp4_bytes(1, CODES, (3, 10, 2, 16)), SCALES: mxfp4_bytes(1, SCALES, (3, 10, 2))}
NUMBERS = np.swapaxes(with_mxfp4_as_numbers(STORED)[NAME], 1, 2)
"""``[experts, out, in]``."""


def opened(directory: Path, tensors: Tensors) -> Checkpoint:
    write_safetensors(directory / SINGLE, tensors, {})
    return Checkpoint.open(find_shards(directory))


def test_codes_and_scales_are_one_tensor(tmp_path: Path) -> None:
    with opened(tmp_path, {**STORED, "norm": np.ones(5, np.float32)}) as checkpoint:
        assert set(checkpoint.tensors) == {NAME, "norm"}
        whole = checkpoint.tensors[NAME]
        assert (whole.shape, whole.format, whole.size_bytes) == (SHAPE, "mxfp4", 3 * 10 * 34)
        assert [piece.name for piece in whole.stored] == [CODES, SCALES]
        assert checkpoint.num_parameters == 3 * 10 * 64 + 5


@pytest.mark.parametrize("wanted", ["mxfp4", "f32"])
def test_they_are_read_as_the_numbers_that_they_mean(tmp_path: Path, wanted: str) -> None:
    with opened(tmp_path, STORED) as checkpoint:
        read = CheckpointSource(checkpoint).read(Weight(TensorRef(NAME, SHAPE, is_stack=True), wanted))
    values = read.data
    if read.scales is not None:
        values = read.integers() * np.repeat(read.scales.values(), 32, axis=1)
    assert values.tolist() == NUMBERS.reshape(30, 64).tolist()


def test_every_second_row_of_one_expert_is_read_alone(tmp_path: Path) -> None:
    ref = TensorRef(NAME, SHAPE, rows=(1, 2), period=2, is_stack=True).member(2)
    with opened(tmp_path, STORED) as checkpoint:
        source = CheckpointSource(checkpoint)
        assert source.read(Weight(ref, "f32")).data.tolist() == NUMBERS[2, 1::2].tolist()
        blocks = source.stored_blocks(Weight(ref, "mxfp4"))
        assert blocks is not None
        assert blocks.shape == (5, 34)
        assert blocks[:, 0].tolist() == STORED[SCALES][2, 1::2, 0].tolist()


def test_blocks_are_split_into_the_codes_and_scales_that_they_were_made_of() -> None:
    codes, scales = STORED[CODES].reshape(30, 2, 16), STORED[SCALES].reshape(30, 2)
    found = split_blocks(mxfp4_blocks(codes, scales))
    assert np.array_equal(found[0], codes)
    assert np.array_equal(found[1], scales)


def test_both_are_read_ahead(tmp_path: Path) -> None:
    with opened(tmp_path, STORED) as checkpoint:
        source = CheckpointSource(checkpoint)
        stack = TensorRef(NAME, SHAPE, is_stack=True)
        weights = [Weight(stack.member(number), "f32") for number in range(3)]
        with source.reading_ahead(weights) as order:
            read = [source.read(weights[place]).data for place in order]
        assert [numbers.tolist() for numbers in read] == [NUMBERS[place].tolist() for place in order]


def test_codes_need_their_scales(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"scales .*gate_up_proj_scales of these codes are missing"):
        opened(tmp_path, {CODES: STORED[CODES]})


@pytest.mark.parametrize("odd", [np.zeros((3, 10, 3), np.uint8), np.zeros((3, 10, 2), np.float32)])
def test_scales_must_fit_their_codes(tmp_path: Path, odd: np.ndarray) -> None:
    with pytest.raises(CheckpointError, match="do not fit the codes") as raised:
        opened(tmp_path, {**STORED, SCALES: odd})
    assert raised.value.tensor == SCALES


def test_bytes_of_another_name_stay_as_they_are(tmp_path: Path) -> None:
    with opened(tmp_path, {"a_blocks": np.zeros(4, np.float32), "b_scales": STORED[SCALES]}) as checkpoint:
        assert set(checkpoint.tensors) == {"a_blocks", "b_scales"}
