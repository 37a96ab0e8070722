"""The comparison of tiles, on a simulated card."""

from __future__ import annotations

import numpy as np
import pytest

from bench.gpu_products import Products, compare, row_of
from llmd_backend_cuda.ops.gemm_tiles import WarpgroupTile, WarpTile
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard

pytestmark = NEEDS_COMPILER


def test_a_tile_that_gives_other_bits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = WarpTile(64, split=False), WarpTile(64, split=True)
    products = Products(SimulatedCard(), "q8_g128", 32, 128, 66)
    monkeypatch.setattr(
        products, "bits", lambda tile: np.arange(3, dtype=np.uint32) + np.uint32(tile == tiles[1])
    )
    monkeypatch.setattr(products, "run_of", lambda _tile: lambda: None)
    found, peer_s = compare(products, tiles, 1, lambda: None, lambda: 2.0)
    assert [found[tile][0] for tile in tiles] == [0, 3]
    assert peer_s == 2.0


@pytest.mark.exhaustive
def test_tiles_have_the_same_bits_on_the_host() -> None:
    products = Products(SimulatedCard(num_processors=2), "q8_g128", 136, 640, 66)
    tiles = products.tiles(warpgroups=True)
    assert any(isinstance(tile, WarpTile) for tile in tiles)
    assert any(isinstance(tile, WarpgroupTile) for tile in tiles)
    expected = products.bits(products.default)
    assert expected.any()
    for tile in tiles:
        np.testing.assert_array_equal(products.bits(tile), expected)


def test_a_row_states_bits_rate_and_share() -> None:
    tile = WarpgroupTile(4, 128, 1, 1)
    assert row_of(tile, 5e9, (0, 1e-5), 6e-6, used=False) == (
        "| warpgroups 256 x 128, 1 ahead | same | 10 | 500 | 60 % |"
    )
    assert row_of(WarpTile(64, split=True), 5e9, (7, 1e-5), None, used=True) == (
        "| warps 128 x 64, split (used) | 7 DIFFER | 10 | 500 |  |"
    )
