"""Which tile a product of many rows gets."""

from __future__ import annotations

import pytest

from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS, MatrixForm
from llmd_backend_cuda.ops.gemm_tiles import (
    INT8_CHUNK_BYTES,
    GemmTile,
    WarpgroupTile,
    WarpTile,
    block_sizes,
    can_use,
    choose_tile,
    num_blocks,
    row_stride,
    tile_candidates,
    warpgroup_tiles,
)
from tests.cuda.simulated import SimulatedCard

Q8, F16 = MatrixForm.of("q8_g128", 4096), MatrixForm.of("f16", 4096)
SHARED_BYTES = 227 << 10
"""Of an H100."""


def chosen(form: MatrixForm, rows: int, tiles: list[int], *, warpgroups: bool) -> GemmTile:
    card = SimulatedCard(num_processors=132)
    card.warpgroups = warpgroups
    return choose_tile(card, form, rows, tiles)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(9, WarpTile(16, split=True)), (64, WarpTile(64, split=True)), (2048, WarpTile(128, split=False))],
)
def test_warps_take_up_to_128_rows_and_few_blocks_are_split(rows: int, expected: WarpTile) -> None:
    assert chosen(Q8, rows, [256], warpgroups=False) == expected


@pytest.mark.parametrize(
    ("name", "most"), [("q8_g128", 128), ("q4", 128), ("q8_0", 128), ("q6_k", 64), ("q4_k", 64), ("q5_1", 64)]
)
def test_rows_in_int8_take_registers_for_several_scales_of_a_chunk(name: str, most: int) -> None:
    form = MatrixForm.of(name, 4096)
    assert block_sizes(form, int8=True)[-1] == most
    assert block_sizes(form, int8=False)[-1] == 128
    card = SimulatedCard(num_processors=132)
    card.warpgroups = True
    tile = choose_tile(card, form, 2048, [256], int8=True)
    assert tile == WarpTile(most, split=False, int8=True), "which warpgroups do not multiply"


def test_rows_in_int8_are_shorter() -> None:
    for chunks in (1, 2, 4, 64):
        stride = row_stride(chunks, int8=True)
        assert chunks * INT8_CHUNK_BYTES <= stride < chunks * INT8_CHUNK_BYTES + 160
        assert stride % 128 == 32, "4 rows are in different banks"
        assert chunks < 2 or stride < row_stride(chunks, int8=False)


def test_warps_take_fewer_rows_of_float16() -> None:
    assert chosen(F16, 2048, [256], warpgroups=False) == WarpTile(64, split=False)


@pytest.mark.parametrize(
    ("rows", "tiles", "expected"),
    [
        (2048, [896, 896], WarpgroupTile(4, 128, 1, 1)),
        (512, [256], WarpgroupTile(2, 128, 2, 1)),
        (256, [256], WarpgroupTile(2, 64, 2, 2)),
    ],
    ids=["large", "128 blocks of 128 rows", "128 blocks of 64 rows"],
)
def test_the_largest_tile_that_keeps_processors_busy_is_chosen(
    rows: int, tiles: list[int], expected: WarpgroupTile
) -> None:
    assert chosen(Q8, rows, tiles, warpgroups=True) == expected


def test_few_rows_are_not_for_warpgroups() -> None:
    assert isinstance(chosen(Q8, 64, [256], warpgroups=True), WarpTile)


@pytest.mark.parametrize("name", CLAIMED_FORMATS)
def test_tiles_of_warpgroups_fit_into_shared_memory(name: str) -> None:
    tiles = warpgroup_tiles(MatrixForm.of(name, 4096))
    assert len(tiles) >= 2
    for tile in tiles:
        assert tile.resident * (tile.shared_bytes + 1024) <= (228 << 10)
        assert tile.shared_bytes <= SHARED_BYTES


def test_blocks_are_counted_for_each_matrix() -> None:
    assert num_blocks(WarpgroupTile(4, 128, 1, 1), 130, [17, 16, 1]) == 2 * (2 + 1 + 1)


@pytest.mark.parametrize("warpgroups", [False, True])
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("rows", [9, 64, 512, 2048])
@pytest.mark.parametrize("name", ["f16", "q4", "q6_k"])
def test_candidates_are_tiles_that_a_card_can_use(
    name: str, rows: int, *, int8: bool, warpgroups: bool
) -> None:
    form, tiles = MatrixForm.of(name, 4096), [64, 32]
    card = SimulatedCard(num_processors=132)
    card.warpgroups = warpgroups
    int8 = int8 and form.is_integer
    found = tile_candidates(card, form, rows, tiles, int8=int8)
    assert found[0] == choose_tile(card, form, rows, tiles, int8=int8)
    assert len(found) == len(set(found)) >= 2
    for tile in found:
        assert tile.shared_bytes <= card.shared_bytes
        assert can_use(tile, card, rows, tiles)
        if isinstance(tile, WarpTile):
            assert tile.rows in block_sizes(form, int8=int8)
            assert tile.int8 == int8
        else:
            assert warpgroups
            assert not int8


def test_slices_have_blocks_of_their_own_only_where_there_is_memory_for_their_sums() -> None:
    card = SimulatedCard(num_processors=132)
    assert can_use(WarpTile(64, split=True), card, 64, [1048])
    assert not can_use(WarpTile(64, split=True), card, 65, [1048])
    assert can_use(WarpTile(64, split=False), card, 65, [1048])
