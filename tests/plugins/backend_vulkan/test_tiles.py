"""Which tiles there are, and which one serves some rows."""

from __future__ import annotations

from llmd_backend_vulkan.buckets import bucket_of
from llmd_backend_vulkan.tiles import (
    LARGE_TILES,
    MEASURED_ROWS,
    Tile,
    candidates,
    default_tile,
    distinct_tiles,
    measured_rows,
)


def test_few_numbers_of_rows_have_all_tiles() -> None:
    assert distinct_tiles(5) == (1, 2, 4, 5)
    most = distinct_tiles(256)
    tiles = {default_tile(bucket_of(rows, 256), 4096) for rows in range(1, 257)}
    assert {default_tile(rows, 4096) for rows in most} == tiles


def test_tiles_are_larger_for_more_rows() -> None:
    found = [default_tile(rows, 4096) for rows in (1, 2, 3, 8, 9, 16, 17, 32, 33, 256)]
    assert [(tile.all_cols, tile.threads) for tile in found] == [
        (1, 64), (2, 64), (4, 64), (8, 64), (8, 256), (8, 256), (32, 128), (32, 128), (64, 128), (64, 128),
    ]  # fmt: skip
    assert default_tile(16, 100).threads == 64


def test_each_number_of_rows_is_served_by_one_that_is_measured() -> None:
    assert [measured_rows(rows) for rows in (1, 2, 3, 16, 17, 32, 33, 4096)] == [1, 1, 8, 8, 32, 32, 256, 256]
    assert [measured_rows(rows) for rows in MEASURED_ROWS] == list(MEASURED_ROWS)


def test_what_is_used_without_measurements_is_a_candidate() -> None:
    for rows in MEASURED_ROWS:
        tiles = candidates(rows)
        assert default_tile(rows, 4096) in tiles
        assert len(set(tiles)) == len(tiles) >= 4


def test_a_tile_for_few_rows_has_no_more_columns_than_rows() -> None:
    assert Tile(2, 8, 256).for_rows(3) == Tile(2, 4, 256)
    assert LARGE_TILES[1].for_rows(33) == LARGE_TILES[1]
