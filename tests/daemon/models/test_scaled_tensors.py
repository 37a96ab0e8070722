from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import TensorRef, Weight
from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import quantize
from llmd.models.shards import find_shards
from llmd.models.weight_source import CheckpointSource
from tests.corrupt.small_model import SINGLE
from tests.golden.checkpoint import Tensors, write_safetensors
from tests.golden.fp8 import fp8_numbers
from tests.golden.weights import E8M0, to_bf16

NAME = "model.layers.0.mlp.down_proj.weight"
SCALES = f"{NAME}_scale_inv"
ROWS, COLS = 300, 140
DRAW = np.random.default_rng(3)
CODES = (
    DRAW.integers(0, 127, (ROWS, COLS), np.uint8) | DRAW.integers(0, 2, (ROWS, COLS), np.uint8) << 7
).view(np.int8)
BY_BLOCK = DRAW.uniform(0.5, 2, (3, 2)).astype(np.float32)
STORED = {NAME: CODES, SCALES: BY_BLOCK}
NUMBERS = fp8_numbers(CODES, BY_BLOCK)
WHOLE = TensorRef(NAME, (ROWS, COLS))
STACK = "model.layers.0.mlp.experts.*.up_proj.weight"
EXPERTS = {
    STACK.replace("*", str(number)) + end: content
    for number in range(3)
    for end, content in (("", np.roll(CODES, number)), ("_scale_inv", BY_BLOCK * np.float32(number + 1)))
}
OF_EXPERTS = np.stack([fp8_numbers(np.roll(CODES, n), BY_BLOCK * np.float32(n + 1)) for n in range(3)])


def opened(directory: Path, tensors: Tensors) -> Checkpoint:
    write_safetensors(directory / SINGLE, tensors, {})
    return Checkpoint.open(find_shards(directory))


def read(directory: Path, tensors: Tensors, ref: TensorRef = WHOLE, wanted: str = "f32") -> Any:
    with opened(directory, tensors) as checkpoint:
        return CheckpointSource(checkpoint).read(Weight(ref, wanted))


def test_numbers_and_scales_are_one_tensor(tmp_path: Path) -> None:
    with opened(tmp_path, {**STORED, "norm": np.ones(5, np.float32)}) as checkpoint:
        assert set(checkpoint.tensors) == {NAME, "norm"}
        whole = checkpoint.tensors[NAME]
        assert (whole.shape, whole.format) == ((ROWS, COLS), "fp8")
        assert whole.size_bytes == ROWS * COLS + 4 * 6
        assert [piece.name for piece in whole.stored] == [NAME, SCALES]


def test_experts_are_a_stack_of_them(tmp_path: Path) -> None:
    with opened(tmp_path, EXPERTS) as checkpoint:
        whole = checkpoint.tensors[STACK]
        assert (whole.shape, whole.format) == ((3, ROWS, COLS), "fp8")
        assert sorted(piece.name for piece in whole.stored) == sorted(EXPERTS)


def test_a_weight_is_a_number_times_the_scale_of_its_block(tmp_path: Path) -> None:
    weight = read(tmp_path, STORED, wanted="fp8")
    assert np.array_equal(weight.data, CODES.view(np.uint8))
    assert not weight.data.flags.owndata
    assert weight.group_size == 128
    assert weight.scales.coarse.dtype == np.float32
    assert weight.scales.coarse[:, 0].tolist() == np.repeat(BY_BLOCK[:, 0], (128, 128, 44)).tolist()
    assert np.array_equal(dequantize(weight), NUMBERS)


@pytest.mark.parametrize(
    "ref",
    [
        TensorRef(NAME, (ROWS, COLS), rows=(100, 290)),
        TensorRef(NAME, (ROWS, COLS), rows=(7, 20), period=30),
    ],
)
@pytest.mark.parametrize("wanted", ["fp8", "f32"])
def test_rows_have_the_scales_of_their_blocks(tmp_path: Path, ref: TensorRef, wanted: str) -> None:
    weight = read(tmp_path, STORED, ref, wanted)
    numbers = dequantize(weight) if wanted == "fp8" else weight.data
    assert np.array_equal(numbers, ref.part_of(NUMBERS))


def test_heads_in_one_matrix_are_read_upright_and_turned(tmp_path: Path) -> None:
    """As latent attention has keys, turned, and values of heads, below each other."""
    of_heads = NUMBERS.reshape(5, 60, COLS)
    keys = TensorRef(NAME, (5, 60, COLS), columns=(0, 34), is_stack=True, is_transposed=True)
    values = TensorRef(NAME, (5, 60, COLS), rows=(34, 60), is_stack=True)
    for number in range(5):
        found = read(tmp_path, STORED, keys.member(number)).data
        assert np.array_equal(found, of_heads[number, :34].T)
        found = dequantize(read(tmp_path, STORED, values.member(number), "fp8"))
        assert np.array_equal(found, of_heads[number, 34:])
    assert np.array_equal(read(tmp_path, STORED, keys).data, np.concatenate([h[:34].T for h in of_heads]))


def test_experts_are_read_alone_and_together(tmp_path: Path) -> None:
    ref = TensorRef(STACK, (3, ROWS, COLS), is_stack=True)
    assert np.array_equal(dequantize(read(tmp_path, EXPERTS, ref, "fp8")), OF_EXPERTS.reshape(-1, COLS))
    assert np.array_equal(dequantize(read(tmp_path, EXPERTS, ref.member(2), "fp8")), OF_EXPERTS[2])


def test_experts_may_be_one_tensor_with_a_scale_for_each_block(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.experts.down_proj"
    stored = {
        name: np.stack([np.roll(CODES, number) for number in range(3)]),
        f"{name}_scale_inv": np.stack([BY_BLOCK * np.float32(number + 1) for number in range(3)]),
    }
    ref = TensorRef(name, (3, ROWS, COLS), is_stack=True)
    assert np.array_equal(read(tmp_path, stored, ref).data, OF_EXPERTS.reshape(-1, COLS))
    last = TensorRef(name, (3, ROWS, COLS), rows=(130, 299), is_stack=True).member(2)
    assert np.array_equal(dequantize(read(tmp_path, stored, last, "fp8")), OF_EXPERTS[2, 130:299])


@pytest.mark.parametrize("shape", [(ROWS, 1), (ROWS,), (1,), (), (1, 1)])
@pytest.mark.parametrize("end", ["_scale_inv", "_scale"])
def test_rows_and_whole_matrices_may_share_a_scale(tmp_path: Path, shape: tuple[int, ...], end: str) -> None:
    scales = np.random.default_rng(1).uniform(0.5, 2, shape).astype(np.float32)
    weight = read(tmp_path, {NAME: CODES, NAME + end: scales}, wanted="fp8")
    assert weight.group_size == COLS
    expected = fp8_numbers(CODES, scales.reshape(ROWS, 1) if scales.size == ROWS else scales.reshape(1))
    assert np.array_equal(dequantize(weight), expected)


def test_scales_may_be_bf16(tmp_path: Path) -> None:
    bits = to_bf16(BY_BLOCK)
    assert np.array_equal(read(tmp_path, STORED | {SCALES: bits}).data, fp8_numbers(CODES, bits))


def test_scales_may_be_powers_of_two(tmp_path: Path) -> None:
    exponents = np.array([[0, 254], [127, 120], [1, 130]], np.uint8)
    powers = np.exp2(exponents.astype(np.float64) - 127).astype(np.float32)
    weight = read(tmp_path, STORED | {SCALES: exponents.view(E8M0)}, wanted="fp8")
    assert weight.scales.coarse[[0, 128, 256]].tolist() == powers.tolist()


def test_scales_may_be_named_as_in_deepseek_v4(tmp_path: Path) -> None:
    stored = {NAME: CODES, NAME.replace("weight", "scale"): BY_BLOCK}
    assert np.array_equal(read(tmp_path, stored).data, NUMBERS)


def test_fp8_may_become_another_format(tmp_path: Path) -> None:
    assert np.array_equal(read(tmp_path, STORED, wanted="f16").data, NUMBERS.astype(np.float16))
    found, expected = read(tmp_path, STORED, wanted="q4_g32"), quantize(NUMBERS, "q4_g32", "f32", None)
    assert np.array_equal(found.data, expected.data)


@pytest.mark.parametrize("stored", [{NAME: CODES}, {NAME: CODES, "other": BY_BLOCK}])
def test_numbers_need_their_scales(tmp_path: Path, stored: Tensors) -> None:
    named = r"_scale_inv, .*weight_scale or .*down_proj\.scale \("
    with pytest.raises(CheckpointError, match=rf"scales .* are missing, .*{named}") as raised:
        opened(tmp_path, stored)
    assert raised.value.tensor == NAME
    assert "copy its weights again" in raised.value.hint


@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (300, 2), (2,), (3, 2, 1), (1, 140)])
def test_scales_must_fit(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(CheckpointError, match=r"fits neither blocks of 128 x 128, nor rows") as raised:
        opened(tmp_path, STORED | {SCALES: np.ones(shape, np.float32)})
    assert raised.value.tensor == SCALES


def test_scales_must_be_numbers(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has dtype I32; scales of FP8 weights have F32, F16, BF16"):
        opened(tmp_path, STORED | {SCALES: np.ones((3, 2), np.int32)})


@pytest.mark.parametrize("wanted", ["fp8", "f32", "q8"])
def test_what_is_no_number_is_refused(tmp_path: Path, wanted: str) -> None:
    odd = CODES.copy()
    odd[299, 139] = 127
    with pytest.raises(CheckpointError, match="an element is not a number") as raised:
        read(tmp_path, STORED | {NAME: odd}, wanted=wanted)
    assert raised.value.tensor == NAME
    scales = BY_BLOCK.copy()
    scales[2, 1] = np.inf
    no_power = np.full((3, 2), 255, np.uint8).view(E8M0)
    for odd_scales in (scales, no_power):
        with pytest.raises(CheckpointError, match="a scale is infinite or not a number"):
            read(tmp_path, STORED | {SCALES: odd_scales}, wanted=wanted)
