"""``python -m bench.gpu_products``: each tile of the products of many rows on a card, compared with cuBLAS.

For each matrix and number of rows, all tiles and cuBLAS take turns in each round. Before, the results of each
tile are compared with those of the tile that is used: all must have the same bits. Rows spread over 16 powers
of two, so that sums round differently if they are added in another order. Seconds are those of
``round_rows`` and the product; cuBLAS multiplies float16.

Products of warpgroups may be used (``CupyRuntime.warpgroups``) once a card has shown the same bits here.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench import cublas
from bench.cublas import seconds_of
from bench.gpu_model import RandomWeights
from llmd.api import Format, Program, StageLimits, TensorRef, Weight

sys.path[:0] = [str(path) for path in Path("plugins").glob("*/src")]

from llmd_backend_cuda.context import Context, StepArgs  # noqa: E402 - the plugin is not installed
from llmd_backend_cuda.cupy_runtime import CupyRuntime  # noqa: E402
from llmd_backend_cuda.matrices import load_matrix  # noqa: E402
from llmd_backend_cuda.matrix_forms import MatrixForm  # noqa: E402
from llmd_backend_cuda.ops.gemm_tiles import (  # noqa: E402
    GemmTile,
    WarpgroupTile,
    WarpTile,
    can_use,
    choose_tile,
    warpgroup_tiles,
)
from llmd_backend_cuda.ops.linear import (  # noqa: E402
    Product,
    partial_bytes,
    rounded_bytes,
    tiled_launches,
)
from llmd_backend_cuda.ops.product_args import OutputArgs, RowsArgs  # noqa: E402
from llmd_backend_cuda.runtime import Runtime  # noqa: E402

MATRICES = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))
"""Outputs and inputs of the matrices of a layer of an 8B model: q, k and v; o; gate and up; down."""
ROWS = (256, 512, 2048)
FORMATS: tuple[Format, ...] = ("q8_g128", "q4_g128_sym")
MORE_TILES = (WarpgroupTile(3, 128, 1, 1), WarpgroupTile(2, 128, 1, 1))
"""Tiles of warpgroups that `choose_tile` does not consider."""


class Products:
    """Rows times a random matrix on a card."""

    def __init__(self, runtime: Runtime, name: Format, out: int, width: int, rows: int) -> None:
        weight = Weight(TensorRef("w", (out, width)), name)
        program = Program(
            0, 1, width, out, 64, (), (), (width, out), (weight,), (), None, None, precision="f16"
        )
        limits = StageLimits(rows, 1, 1)
        self._runtime, self._rows = runtime, rows
        self._matrix = load_matrix(runtime, RandomWeights().read(weight))
        draw = np.random.default_rng(1)
        x = draw.standard_normal((rows, width)) * 2.0 ** draw.integers(-8, 8, (rows, width))
        self._x, self._out = runtime.allocate(4 * rows * width), runtime.allocate(4 * rows * out)
        runtime.upload(self._x, 0, x.astype(np.float32))
        self._context = Context(
            runtime, program, limits, StepArgs(), [self._x, self._out], [None], (), [self._matrix],
            rounded=runtime.allocate(rounded_bytes(program, limits)),
            partials=runtime.allocate(partial_bytes(limits, runtime.num_processors)),
        )  # fmt: skip
        self.default: GemmTile = choose_tile(runtime, self._matrix.size.form, rows, [self._matrix.size.tiles])
        """The tile that is used."""

    def run_of(self, tile: GemmTile) -> Callable[[], None]:
        """Return a function that begins the product with a tile."""
        size = self._matrix.size
        rows = RowsArgs(x=self._x.pointer, width=size.width)
        output = OutputArgs(out=self._out.pointer, scale=1.0, width=size.out, tiles=size.tiles)
        product = Product(rows, [output], [self._matrix])
        launches = list(tiled_launches(self._context, product, self._rows, tile))

        def run() -> None:
            for launch in launches:
                self._runtime.launch(launch)

        return run

    def bits(self, tile: GemmTile) -> np.ndarray:
        """Return the bits of the outputs with a tile."""
        found = np.empty(self._rows * self._matrix.size.out, np.uint32)
        self._runtime.fill_zero(self._out)
        self.run_of(tile)()
        self._runtime.download(found, self._out, 0)
        return found

    def tiles(self, *, warpgroups: bool) -> list[GemmTile]:
        """Return all tiles that the product may have."""
        form, count = self._matrix.size.form, [self._matrix.size.tiles]
        sizes = (64,) if form.bits == 16 else (64, 128)
        whole = [WarpTile(rows, split=False) for rows in sizes]
        found: list[GemmTile] = [tile for tile in whole if tile.shared_bytes <= self._runtime.shared_bytes]
        split = [WarpTile(rows, split=True) for rows in sizes]
        found += [tile for tile in split if can_use(tile, self._runtime, self._rows, count)]
        return [*found, *_group_tiles(form)] if warpgroups else found


def _group_tiles(form: MatrixForm) -> tuple[WarpgroupTile, ...]:
    return (*warpgroup_tiles(form), *MORE_TILES)


def compare(
    products: Products,
    tiles: Sequence[GemmTile],
    rounds: int,
    wait: Callable[[], object],
    peer: Callable[[], float] | None,
) -> tuple[Mapping[GemmTile, tuple[int, float]], float | None]:
    """Return (outputs with other bits, median seconds) of each tile, and the median seconds of the peer."""
    runs = {tile: products.run_of(tile) for tile in tiles}  # all kernels are compiled at the same time
    expected = products.bits(products.default)
    differ = {tile: int(np.count_nonzero(products.bits(tile) != expected)) for tile in tiles}
    seconds: dict[GemmTile, list[float]] = {tile: [] for tile in tiles}
    peer_s: list[float] = []
    for _ in range(rounds):
        for tile, run in runs.items():
            seconds[tile].append(seconds_of(run, wait))
        if peer:
            peer_s.append(peer())
    found = {tile: (differ[tile], statistics.median(seconds[tile])) for tile in tiles}
    return found, statistics.median(peer_s) if peer_s else None


def row_of(
    tile: GemmTile, flops: float, found: tuple[int, float], peer_s: float | None, *, used: bool
) -> str:
    """Return the row of a tile in the table of a product."""
    differ, seconds = found
    kind = "warpgroups" if isinstance(tile, WarpgroupTile) else "warps"
    detail = f", {tile.ahead} ahead" if isinstance(tile, WarpgroupTile) else ", split" if tile.split else ""
    bits = f"{differ} DIFFER" if differ else "same"
    share = "" if peer_s is None else f"{100 * peer_s / seconds:.0f} %"
    name = f"{kind} {16 * tile.tiles} x {tile.rows}{detail}{' (used)' if used else ''}"
    return f"| {name} | {bits} | {1e6 * seconds:.0f} | {flops / seconds / 1e12:.0f} | {share} |"


def main() -> None:
    """Print a table for each product; exit with an error if bits differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_products", description=__doc__)
    parser.add_argument("--device", type=int, default=0, help="number of the card (default: 0)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each product (default: 5)")
    asked = parser.parse_args()
    runtime = CupyRuntime(asked.device)
    has_groups = runtime.capability == (9, 0)
    try:
        api, blas = cublas.load()
    except cublas.MissingLibraryError as error:
        print(f"cuBLAS is not measured: {error}")
        api = blas = None
    wrong = False
    for name in FORMATS:
        for out, width in MATRICES:
            for rows in ROWS:
                with ExitStack() as stack:
                    products = Products(runtime, name, out, width, rows)
                    peer = None
                    if blas is not None:
                        handle = blas.create()
                        stack.callback(blas.destroy, handle)
                        peer = cublas.prepared_product(handle, (out, width), rows, api, blas, stack)
                    tiles = products.tiles(warpgroups=has_groups)
                    found, peer_s = compare(products, tiles, asked.rounds, runtime.synchronize, peer)
                    print(f"\n{name}, {rows} rows, matrix {out} x {width}\n")
                    print("| tile | bits | us | TFLOP/s | of cuBLAS |\n|---|---|---|---|---|")
                    for tile in tiles:
                        used = tile == products.default
                        print(
                            row_of(tile, 2.0 * out * width * rows, found[tile], peer_s, used=used), flush=True
                        )
                        wrong = wrong or found[tile][0] > 0
    runtime.close()
    sys.exit("some tiles give other bits" if wrong else None)


if __name__ == "__main__":
    main()
