from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
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
from tests.golden.mxfp4 import MAGNITUDES, fp4_tensors, mxfp4_bytes, with_mxfp4_as_numbers
from tests.golden.weights import E2M1_PAIRS, E8M0, draw

NAME = "model.layers.0.mlp.experts.gate_up_proj"
CODES, SCALES = f"{NAME}_blocks", f"{NAME}_scales"
SHAPE = (3, 10, 64)
STORED = {CODES: mxfp4_bytes(1, CODES, (3, 10, 2, 16)), SCALES: mxfp4_bytes(1, SCALES, (3, 10, 2))}
NUMBERS = np.swapaxes(with_mxfp4_as_numbers(STORED)[NAME], 1, 2)
"""``[experts, out, in]``."""
STACK = "layers.0.ffn.experts.*.w1.weight"
ONE = STACK.replace("*", "1")
APART = {
    part: stored
    for name in (STACK.replace("*", str(number)) for number in range(3))
    for part, stored in fp4_tensors(1, name, draw(1, name, (10, 64), 0.0, 0.02))
}
"""Experts as DeepSeek-V4 has them."""


def numbers_of(name: str) -> np.ndarray:
    """What an expert of `APART` means, float32 ``[out, in]``."""
    codes, scales = APART[name].view(np.uint8), APART[name.replace("weight", "scale")].view(np.uint8)
    book = np.array((*MAGNITUDES, *(-value for value in MAGNITUDES)), np.float32)
    numbers = np.stack([book[codes & 15], book[codes >> 4]], axis=-1).reshape(10, 64)
    product: np.ndarray = numbers * np.repeat(np.exp2(scales.astype(np.float32) - 127), 32, axis=1)
    return product


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


def test_experts_of_deepseek_v4_are_a_stack(tmp_path: Path) -> None:
    with opened(tmp_path, {**APART, "a.scale": np.ones(3, np.float32)}) as checkpoint:
        assert set(checkpoint.tensors) == {STACK, "a.scale"}
        whole = checkpoint.tensors[STACK]
        assert (whole.shape, whole.format, whole.size_bytes) == (SHAPE, "mxfp4", 3 * 10 * 34)
        assert sorted(piece.name for piece in whole.stored) == sorted(APART)


@pytest.mark.parametrize("dtype", [E2M1_PAIRS, np.uint8], ids=["I8", "U8"])
@pytest.mark.parametrize("wanted", ["mxfp4", "f32"])
def test_each_is_read_as_the_numbers_that_it_means(tmp_path: Path, wanted: str, dtype: Any) -> None:
    stored = {
        name: content if name.endswith("scale") else content.view(dtype) for name, content in APART.items()
    }
    with opened(tmp_path, stored) as checkpoint:
        source = CheckpointSource(checkpoint)
        ref = TensorRef(STACK, SHAPE, is_stack=True)
        read = source.read(Weight(ref, wanted))
        rows = source.read(Weight(msgspec.structs.replace(ref, rows=(3, 7)).member(1), "f32"))
    values = read.data
    if read.scales is not None:
        values = read.integers() * np.repeat(read.scales.values(), 32, axis=1)
    expected = np.concatenate([numbers_of(STACK.replace("*", str(number))) for number in range(3)])
    assert values.tolist() == expected.tolist()
    assert rows.data.tolist() == numbers_of(ONE)[3:7].tolist()


def test_codes_are_used_as_they_are_stored(tmp_path: Path) -> None:
    weight = Weight(TensorRef(STACK, SHAPE, is_stack=True).member(1), "mxfp4")
    with opened(tmp_path, APART) as checkpoint:
        blocks = CheckpointSource(checkpoint).stored_blocks(weight)
    assert blocks is not None
    codes, scales = split_blocks(blocks)
    assert np.array_equal(codes.reshape(10, 32), APART[ONE].view(np.uint8))
    assert np.array_equal(scales, APART[ONE.replace("weight", "scale")].view(np.uint8))


def test_each_expert_needs_its_scales(tmp_path: Path) -> None:
    left = {name: stored for name, stored in APART.items() if name != ONE.replace("weight", "scale")}
    with pytest.raises(
        CheckpointError, match=r"MXFP4 \[10, 64\], and .*\.1\.w1\.weight I8 \[10, 32\]"
    ) as raised:
        opened(tmp_path, left)
    assert "the model is incomplete" in raised.value.hint


def test_bytes_without_such_scales_stay_as_they_are(tmp_path: Path) -> None:
    stored = {"a.weight": APART[ONE], "a.weight_scale": np.ones(10, np.float32)}
    with opened(tmp_path, stored) as checkpoint:
        assert {tensor.dtype for tensor in checkpoint.tensors.values()} == {"I8", "F32"}


@pytest.mark.parametrize(
    "odd",
    [
        np.zeros((10, 2), np.float32),
        np.zeros((10, 2), np.uint8),
        np.zeros((10, 1), np.uint8).view(E8M0),
        np.zeros((5, 2), np.uint8).view(E8M0),
        np.zeros(20, np.uint8).view(E8M0),
        np.zeros((), np.uint8).view(E8M0),
    ],
    ids=lambda odd: f"{odd.dtype.name}-{odd.shape}",
)
def test_scales_of_other_groups_and_dtypes_are_refused(tmp_path: Path, odd: np.ndarray) -> None:
    name = ONE.replace("weight", "scale")
    with pytest.raises(CheckpointError, match="do not fit the codes") as raised:
        opened(tmp_path, {**APART, name: odd})
    assert raised.value.tensor == name


def test_rows_must_be_of_whole_groups(tmp_path: Path) -> None:
    odd = {
        "a.weight": np.zeros((3, 20), np.uint8).view(E2M1_PAIRS),
        "a.scale": np.zeros((3, 1), np.uint8).view(E8M0),
    }
    with pytest.raises(CheckpointError, match=r"do not fit the codes: \[3, 20\]"):
        opened(tmp_path, odd)


@pytest.mark.parametrize(("codes", "scales"), [(CODES, SCALES), (ONE, ONE.replace("weight", "scale"))])
def test_a_scale_that_is_no_number_is_refused(tmp_path: Path, codes: str, scales: str) -> None:
    stored = STORED if codes == CODES else APART
    odd = stored[scales].copy()
    odd.view(np.uint8)[..., 0] = 255
    name = NAME if codes == CODES else STACK
    with opened(tmp_path, {**stored, scales: odd}) as checkpoint:
        source, weight = CheckpointSource(checkpoint), Weight(TensorRef(name, SHAPE, is_stack=True), "mxfp4")
        for read in (source.read, source.stored_blocks):
            with pytest.raises(CheckpointError, match="a scale is not a number") as raised:
                read(weight)
            assert raised.value.tensor == scales
