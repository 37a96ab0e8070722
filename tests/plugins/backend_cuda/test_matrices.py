"""Matrices on the card: what they take, and where codes and scales lie."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import (
    PLAIN_FORMATS,
    Format,
    GroupScales,
    MemoryBudgetError,
    TensorRef,
    Weight,
    WeightData,
)
from llmd.models.plain_formats import from_float32, to_float32
from llmd.testing.sources import RandomSource
from llmd_backend_cuda import matrices as matrices_module
from llmd_backend_cuda.matrices import (
    DeviceMatrix,
    arranged,
    load_matrix,
    load_stack,
    pack_spec,
    relative_scales,
)
from llmd_backend_cuda.matrix_forms import CHUNK, MatrixForm, MatrixSize
from llmd_backend_cuda.runtime import Memory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents

pytestmark = NEEDS_COMPILER

OUT, WIDTH = 40, 100
"""Three tiles and two chunks, the last of which are padded."""


def random_weight(name: Format, out: int = OUT, width: int = WIDTH) -> WeightData:
    return RandomSource().read(Weight(TensorRef("w", (out, width)), name))


def read(card: SimulatedCard, memory: Memory | None, dtype: type[np.generic]) -> NDArray[np.generic]:
    assert memory is not None
    return contents(card, memory, dtype)


# Memory


def test_packing_depends_on_plain_formats_but_not_on_groups() -> None:
    sources = [dict(pack_spec(MatrixForm.of(name, 64), name).defines)["SOURCE"] for name in PLAIN_FORMATS]
    assert sources == [0, 1, 2]
    small, large = (pack_spec(MatrixForm.of(name, 256), name) for name in ("q4_g32_sym", "q4_g128_sym"))
    assert small == large


@pytest.mark.parametrize("name", ["f16", "q8_row", "q6_k", "q5_1", "q3_g32", "q2_g64", "q4", "q2_k", "fp8"])
def test_a_matrix_takes_as_many_bytes_as_its_size_says(name: Format) -> None:
    card = SimulatedCard()
    matrix = DeviceMatrix.allocate(card, MatrixSize(MatrixForm.of(name, 256), OUT, 256))
    assert card.used_bytes == matrix.size.num_bytes
    del matrix
    assert card.used_bytes == 0


def test_arguments_have_null_for_what_a_form_lacks() -> None:
    card = SimulatedCard()
    plain = DeviceMatrix.allocate(card, MatrixSize(MatrixForm(16), OUT, WIDTH)).args
    assert (plain.high, plain.scales.scales, plain.scales.minimums, plain.scales.fine) == (None,) * 4
    assert plain.scales.of_rows is None
    assert (plain.chunks, plain.scales.groups) == (2, 1)
    matrix = DeviceMatrix.allocate(card, MatrixSize(MatrixForm(5, 32, minimum=True), OUT, WIDTH))
    assert matrix.high is not None
    assert matrix.args.high == matrix.high.pointer
    assert all((matrix.args.low, matrix.args.scales.scales, matrix.args.scales.minimums))
    assert matrix.args.scales.fine is None
    two = DeviceMatrix.allocate(card, MatrixSize(MatrixForm.of("q4", 256), OUT, 256))
    assert all((two.args.scales.scales, two.args.scales.fine))
    assert two.args.scales.minimums is None, "they are the negated scales"
    numbers = DeviceMatrix.allocate(card, MatrixSize(MatrixForm.of("fp8", 256), OUT, 256))
    assert all((numbers.args.scales.scales, numbers.args.scales.of_rows))


# Contents


def tiles_of(values: NDArray[np.generic], padding: int) -> NDArray[np.generic]:
    """Return values as [tile, row / 8, row % 8, chunk, half, column / 8, column % 8]."""
    padded = np.full((48, 128), padding, values.dtype)
    padded[: values.shape[0], : values.shape[1]] = values
    return padded.reshape(3, 2, 8, 2, 2, 4, 8)


@pytest.mark.parametrize("name", PLAIN_FORMATS)
def test_plain_weights_are_float16_in_the_order_of_lanes(name: Format) -> None:
    card, data = SimulatedCard(), random_weight(name)
    matrix = load_matrix(card, data)
    values = from_float32(to_float32(data.data, name), "f16").view(np.uint16)
    # [tile][chunk][half][row g, g + 8][lane][8]
    expected = tiles_of(values, 0).transpose(0, 3, 4, 1, 2, 5, 6)
    np.testing.assert_array_equal(read(card, matrix.low, np.uint16), expected.reshape(-1))


def test_bytes_of_both_rows_of_a_lane_are_neighbours() -> None:
    card, data = SimulatedCard(), random_weight("q8_row")
    matrix = load_matrix(card, data)
    # [tile][chunk][half][lane][row g, row g + 8][8]
    expected = tiles_of(data.data, matrix.size.form.zero).transpose(0, 3, 4, 2, 5, 1, 6)
    np.testing.assert_array_equal(read(card, matrix.low, np.uint8), expected.reshape(-1))


@pytest.mark.parametrize("name", ["q6_k", "q5_1", "q4_g32", "q3_g32", "q2_g64"])
def test_packed_codes_have_all_bits_once(name: Format) -> None:
    """test_linear shows that kernels find them; here, no bit is lost or set twice."""
    card, data = SimulatedCard(), random_weight(name, 48, 256)
    matrix = load_matrix(card, data)
    form = matrix.size.form
    bits = np.unpackbits(data.data.view(np.uint8)[:, :, None], axis=2, bitorder="little")
    low = np.unpackbits(read(card, matrix.low, np.uint8).view(np.uint8))
    assert low.sum() == bits[:, :, : form.low_bits].sum()
    if form.high_bits:
        high = np.unpackbits(read(card, matrix.high, np.uint8).view(np.uint8))
        assert high.sum() == bits[:, :, form.low_bits :].sum()


def test_codes_of_a_book_are_in_the_order_of_columns() -> None:
    card, data = SimulatedCard(), random_weight("iq4_nl", OUT, 96)
    matrix = load_matrix(card, data)
    # [tile][chunk][lane][half][row g, row g + 8][8], two codes in a byte
    codes = tiles_of(data.data, 0).transpose(0, 3, 2, 5, 4, 1, 6).reshape(-1, 2).astype(np.uint8)
    expected = codes[:, 0] | codes[:, 1] << 4
    np.testing.assert_array_equal(read(card, matrix.low, np.uint8), expected)


def test_scales_beyond_float16_become_its_largest_power_of_two() -> None:
    scales = np.array([[2.0**20, 2.0**-20, 2.0**-30]], np.float32)
    found = arranged(scales, MatrixSize(MatrixForm(4, 32, book=2), 1, 96))
    assert found[0, :, 0, 0].tolist() == [2.0**15, 2.0**-20, 0.0]


def test_the_largest_scale_of_a_row_stays_exact() -> None:
    size = MatrixSize(MatrixForm.of("fp8", 300), 3, 300)
    scales = np.array([[3e-7, -1e-9, 3e-7], [0, 0, 0], [1e20, 1e-20, -3e20]], np.float32)
    data = WeightData("fp8", np.zeros((3, 300), np.uint8), GroupScales(scales), group_size=128)
    of_rows, of_groups = relative_scales(data, size)
    assert of_rows.tolist() == [np.float32(3e-7) / 128, 0, np.float32(3e20) / 128] + [0] * 13
    np.testing.assert_allclose(of_groups.coarse[[0, 2], 0], [2.0**15, 2.0**15 / 3], rtol=1e-6)
    assert of_groups.coarse[2].tolist()[2] == -(2.0**15)
    assert of_groups.coarse[1].tolist() == [0, 0, 0]


def test_groups_have_the_scale_of_their_row_if_it_has_one() -> None:
    data = WeightData("fp8", np.zeros((1, 300), np.uint8), GroupScales(np.full((1, 1), 5e-3)), group_size=300)
    _, of_groups = relative_scales(data, MatrixSize(MatrixForm.of("fp8", 300), 1, 300))
    assert of_groups.coarse.tolist() == [[2.0**15] * 3]


def test_scales_of_a_row_and_of_the_eighth_after_it_are_neighbours() -> None:
    card, data = SimulatedCard(), random_weight("q4_g32")
    matrix = load_matrix(card, data)
    for given, memory in ((data.scales, matrix.scales), (data.minimums, matrix.minimums)):
        assert given is not None
        pairs = arranged(given.coarse, matrix.size)
        assert pairs.shape == (3, 4, 8, 2)
        values = given.values().astype(np.float16)
        assert (pairs[1, 2, 3] == values[[19, 27], 2]).all()
        assert pairs[2, 0, 0, 1] == 0, "row 40 does not exist"
        np.testing.assert_array_equal(read(card, memory, np.float16), pairs.reshape(-1))


def fine_values(contents: NDArray[np.uint8], form: MatrixForm) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the fine scales and minimums ``[tile, chunk, record, entry]`` of three tiles."""
    records = CHUNK // form.group * 4
    rest_bits = form.scale_bits + form.minimum_bits - 8
    chunks = contents.reshape(3, -1, records * (4 + rest_bits // 2)).astype(np.int32)
    both = chunks[..., : 4 * records].reshape(3, -1, records, 4)
    rest = chunks[..., 4 * records :].reshape(3, both.shape[1], records, -1)
    if rest_bits == 4:
        rest = np.stack((rest & 15, rest >> 4), axis=-1).reshape(both.shape)
    if rest_bits:
        both = both | rest << 8
    if form.minimum_bits == 8:
        return both >> 8, both & 255
    return both & (1 << form.scale_bits) - 1, both >> form.scale_bits


@pytest.mark.parametrize("name", ["q4", "q2", "q4_k", "q2_k", "q6_k", "iq4_xs"])
def test_fine_scales_lie_where_lanes_read_them(name: Format) -> None:
    card, data = SimulatedCard(), random_weight(name, OUT, 512)
    matrix = load_matrix(card, data)
    form = matrix.size.form
    scales, minimums = fine_values(read(card, matrix.fine, np.uint8), form)  # type: ignore[arg-type]
    assert data.scales is not None
    for found, given, offset in (
        (scales, data.scales, 0 if form.minimum else 128),
        (minimums, data.minimums, 0),
    ):
        if given is None:
            continue
        assert given.fine is not None
        for tile, chunk, lane, entry in (
            (0, 0, 0, 0),
            (1, 5, 13, 1),
            (0, 7, 31, 2),
            (2, 3, 6, 2),
            (1, 0, 26, 3),
        ):
            row, column = (
                16 * tile + lane // 4 + 8 * (entry % 2),
                64 * chunk + 32 * (entry // 2) + lane % 4 * 8,
            )
            record = lane // 2 if form.group == 16 else lane // 4
            assert found[tile, chunk, record, entry] == int(given.fine[row, column // form.group]) + offset


def test_coarse_scales_are_those_of_256_columns() -> None:
    card, data = SimulatedCard(), random_weight("q4_k", OUT, 512)
    matrix = load_matrix(card, data)
    assert matrix.size.groups == 2
    for given, memory in ((data.scales, matrix.scales), (data.minimums, matrix.minimums)):
        assert given is not None
        pairs = read(card, memory, np.float16).reshape(3, 2, 8, 2)
        assert (pairs[1, 1, 3] == given.coarse[[19, 27], 1]).all()


@pytest.mark.parametrize("name", ["f16", "q4_g32"])
def test_a_large_matrix_passes_in_parts(monkeypatch: pytest.MonkeyPatch, name: Format) -> None:
    card, data = SimulatedCard(), random_weight(name)
    whole = load_matrix(card, data)
    card.launched.clear()
    monkeypatch.setattr(matrices_module, "_STAGING_BYTES", 20 * data.data[:1].nbytes)
    parts = load_matrix(card, data)
    assert card.launched == ["pack"] * 3
    np.testing.assert_array_equal(read(card, parts.low, np.uint8), read(card, whole.low, np.uint8))


def test_a_strided_weight_is_loaded() -> None:
    card, data = SimulatedCard(), random_weight("f16", OUT, 2 * WIDTH)
    strided = WeightData("f16", data.data[:, ::2])
    dense = WeightData("f16", np.ascontiguousarray(data.data[:, ::2]))
    found = [read(card, load_matrix(card, one).low, np.uint16) for one in (strided, dense)]
    np.testing.assert_array_equal(found[0], found[1])


def test_only_the_matrix_stays_on_the_card() -> None:
    card = SimulatedCard()
    matrix = load_matrix(card, random_weight("q4_g32"))
    assert card.used_bytes == matrix.size.num_bytes
    with pytest.raises(MemoryBudgetError):
        load_matrix(SimulatedCard(memory_bytes=1000), random_weight("q4_g32"))


@pytest.mark.parametrize("name", ["f16", "q6_k", "q4_k", "fp8"])
def test_the_members_of_a_stack_follow_one_another(name: Format) -> None:
    card, ref = SimulatedCard(), TensorRef("w", (3, OUT, 256), is_stack=True)
    members = [RandomSource().read(Weight(ref.member(number), name)) for number in range(3)]
    stack, single = load_stack(card, 3, members.__getitem__), [load_matrix(card, one) for one in members]
    assert (stack.size.members, stack.size.tiles, stack.size.all_tiles) == (3, 3, 9)
    assert stack.size.num_bytes == sum(one.size.num_bytes for one in single)
    for array in ("low", "high", "scales", "minimums", "fine", "row_scales"):
        parts = [getattr(one, array) for one in single if getattr(one, array) is not None]
        if not parts:
            assert getattr(stack, array) is None
            continue
        expected = np.concatenate([read(card, part, np.uint8) for part in parts])
        np.testing.assert_array_equal(read(card, getattr(stack, array), np.uint8), expected)
