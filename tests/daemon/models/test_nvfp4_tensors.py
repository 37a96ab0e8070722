from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

from llmd.api import TensorRef, Weight
from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.dequantization import dequantize
from llmd.models.gguf.source import GgufSource
from llmd.models.shards import find_shards
from llmd.models.weight_source import CheckpointSource
from tests.corrupt.small_model import SINGLE
from tests.golden.checkpoint import Tensors, write_safetensors
from tests.golden.fp8 import MAGNITUDES as SCALES
from tests.golden.mxfp4 import MAGNITUDES

MODULE = "model.layers.0.mlp.down_proj."
NAME = f"{MODULE}weight"
ROWS, COLS = 30, 48
DRAW = np.random.default_rng(3)
PACKED = DRAW.integers(0, 256, (ROWS, COLS // 2), dtype=np.uint8)
OF_GROUPS = DRAW.integers(1, 127, (ROWS, COLS // 16), dtype=np.uint8)
OF_MATRIX = np.array([0.37], np.float32)
STORED: dict[str, Any] = {
    NAME: PACKED,
    f"{NAME}_scale": OF_GROUPS.view(np.int8),
    f"{NAME}_scale_2": OF_MATRIX.reshape(()),
}
STACK = "model.layers.0.mlp.experts.*.up_proj.weight"
EXPERTS = {
    STACK.replace("*", str(number)) + end: tensor
    for number in range(3)
    for end, tensor in (
        ("", np.roll(PACKED, number)),
        ("_scale", OF_GROUPS.view(np.int8)),
        ("_scale_2", OF_MATRIX * np.float32(number + 1)),
    )
}


def numbers(packed: Any, of_matrix: Any = OF_MATRIX, *, divides: bool = False) -> Any:
    """What codes with the scales `OF_GROUPS` mean."""
    values = np.array((*MAGNITUDES, *(-value for value in MAGNITUDES)), np.float32)
    elements = np.stack([values[packed & 15], values[packed >> 4]], axis=-1).reshape(ROWS, COLS)
    scales = SCALES.astype(np.float32)[OF_GROUPS]
    return elements * np.repeat(scales / of_matrix if divides else scales * of_matrix, 16, axis=1)


NUMBERS = numbers(PACKED)
WHOLE = TensorRef(NAME, (ROWS, COLS))


def opened(directory: Path, tensors: Tensors) -> Checkpoint:
    write_safetensors(directory / SINGLE, tensors, {})
    return Checkpoint.open(find_shards(directory))


def read(directory: Path, tensors: Tensors, ref: TensorRef = WHOLE, wanted: str = "nvfp4") -> Any:
    with opened(directory, tensors) as checkpoint:
        return CheckpointSource(checkpoint).read(Weight(ref, wanted))


def test_codes_and_scales_are_one_tensor(tmp_path: Path) -> None:
    with opened(
        tmp_path, STORED | {"norm": np.ones(5, np.float32), f"{MODULE}input_scale": OF_MATRIX}
    ) as found:
        assert set(found.tensors) == {NAME, "norm"}
        whole = found.tensors[NAME]
        assert (whole.shape, whole.format) == ((ROWS, COLS), "nvfp4")
        assert whole.size_bytes == ROWS * (COLS // 2 + COLS // 16) + 4
        assert sorted(piece.name for piece in whole.stored) == sorted(STORED)


def test_a_weight_is_a_number_times_both_scales(tmp_path: Path) -> None:
    weight = read(tmp_path, STORED)
    assert weight.group_size == 16
    assert np.array_equal(dequantize(weight), NUMBERS)
    assert np.array_equal(read(tmp_path, STORED, wanted="f32").data, NUMBERS)


def test_llm_compressor_packs_weights_and_divides_by_the_last_scale(tmp_path: Path) -> None:
    stored: dict[str, Any] = {
        f"{MODULE}weight_packed": PACKED,
        f"{MODULE}weight_scale": OF_GROUPS.view(np.int8),
        f"{MODULE}weight_global_scale": OF_MATRIX,
    }
    assert np.array_equal(dequantize(read(tmp_path, stored)), numbers(PACKED, divides=True))


@pytest.mark.parametrize(
    "ref",
    [TensorRef(NAME, (ROWS, COLS), rows=(7, 20)), TensorRef(NAME, (ROWS, COLS), rows=(1, 3), period=6)],
)
def test_rows_have_their_scales(tmp_path: Path, ref: TensorRef) -> None:
    assert np.array_equal(dequantize(read(tmp_path, STORED, ref)), ref.part_of(NUMBERS))


def test_columns_may_be_rows(tmp_path: Path) -> None:
    ref = TensorRef(NAME, (ROWS, COLS), is_transposed=True)
    assert np.array_equal(read(tmp_path, STORED, ref, "f32").data, NUMBERS.T)


def test_each_expert_has_its_scale(tmp_path: Path) -> None:
    ref = TensorRef(STACK, (3, ROWS, COLS), is_stack=True)
    expected = [numbers(np.roll(PACKED, n), OF_MATRIX * np.float32(n + 1)) for n in range(3)]
    assert np.array_equal(dequantize(read(tmp_path, EXPERTS, ref)), np.concatenate(expected))
    assert np.array_equal(dequantize(read(tmp_path, EXPERTS, ref.member(2))), expected[2])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({f"{NAME}_scale": None}, "the scales .*weight_scale of these codes are missing"),
        (
            {f"{NAME}_scale": OF_GROUPS.view(np.int8)[:-1]},
            r"F8_E4M3 \[29, 3\], which do not fit the codes: \[30, 24\]",
        ),
        ({f"{NAME}_scale": OF_GROUPS}, "has U8"),
        ({f"{NAME}_scale": np.zeros((), np.int8)}, r"F8_E4M3 \[\], which do not fit"),
        ({f"{NAME}_scale_2": np.ones(2, np.float32)}, r"F32 \[2\], which do not fit"),
    ],
)
def test_scales_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    stored = {name: tensor for name, tensor in (STORED | changes).items() if tensor is not None}
    with pytest.raises(CheckpointError, match=problem) as raised:
        opened(tmp_path, stored)
    assert "copy its weights again" in raised.value.hint


def blocks(seed: int, rows: int) -> Any:
    """Blocks of a GGUF file, two in a row, whose scales are numbers."""
    found = np.random.default_rng(seed).integers(0, 256, (rows, 2, 36), dtype=np.uint8)
    found[..., :4] = found[..., :4] % 0x7F
    return found.reshape(rows, -1)


def test_a_gguf_file_has_a_scale_beside_the_blocks_of_each_matrix_or_none(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    kind = GGMLQuantizationType.NVFP4
    experts = np.stack([blocks(number, 6) for number in range(3)])
    for name, tensor in (("a", blocks(9, 7)), ("b", blocks(8, 5)), ("e", experts)):
        writer.add_tensor(f"{name}.weight", tensor, raw_dtype=kind)
    writer.add_tensor("b.scale", OF_MATRIX)
    writer.add_tensor("e.scale", np.array([0.5, 2, 3], np.float32))
    writer.add_tensor("b.input_scale", OF_MATRIX)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = GgufSource.find(tmp_path / "m.gguf")
    assert found is not None
    with found.open_checkpoint() as checkpoint:
        assert set(checkpoint.tensors) == {"a.weight", "b.weight", "e.weight"}
        source = CheckpointSource(checkpoint)
        for name, rows, scale in (("a", 7, 1), ("b", 5, OF_MATRIX[0])):
            weight = Weight(TensorRef(f"{name}.weight", (rows, 128)), "nvfp4")
            stored = quants.dequantize(blocks(9 if name == "a" else 8, rows), kind)
            assert np.allclose(dequantize(source.read(weight)), stored * scale, rtol=1e-6, atol=0)
            assert source.stored_blocks(weight) is None
        stack = TensorRef("e.weight", (3, 6, 128), is_stack=True)
        for ref, members in ((stack, range(3)), (stack.member(1), (1,))):
            expected = [quants.dequantize(experts[number], kind) * (0.5, 2, 3)[number] for number in members]
            assert np.allclose(
                dequantize(source.read(Weight(ref, "nvfp4"))), np.concatenate(expected), rtol=1e-6, atol=0
            )
