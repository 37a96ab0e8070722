"""What a block of the products of many rows takes: tiles for ``kernels/gemm.cu`` and ``gemm_warpgroup.cu``.

All tiles give a row the same bits, so that a tile may be chosen by speed alone. For products of warpgroups
this was not shown on a card yet: `llmd_backend_cuda.runtime.Runtime.warpgroups` says whether they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from llmd_backend_cuda.matrix_forms import CHUNK, TILE, MatrixForm
from llmd_backend_cuda.runtime import KernelSpec, Runtime

SLICES = 8
"""Slices of the columns, whose sums are added in order."""

TILES_OF_BLOCK = 8
"""Tiles of 16 weight rows of a block of ``gemm.cu``."""

MOST_ROWS_OF_BLOCK = 128

INT8_CHUNK_BYTES = 80
"""Bytes of a chunk of int8 rows, with its scales and sums (``kernels/rows_int8.cuh``)."""

_LEAST_ROWS_OF_WARPGROUPS = 65
"""Fewer rows are bound by reading weights."""

_PRODUCTS_OF_CYCLE = 1400
_BYTES_OF_CYCLE = 24
"""What a processor of an H100 is assumed to multiply (of 2048 in the best case) and to read from its L2 cache
in a cycle. Not measured with these kernels."""


class GemmTile(Protocol):
    """How a block multiplies many rows."""

    @property
    def rows(self) -> int:
        """Rows of ``x``."""
        ...

    @property
    def tiles(self) -> int:
        """Tiles of 16 weight rows."""
        ...

    @property
    def threads(self) -> int:
        """Threads of a block."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        ...

    @property
    def split(self) -> bool:
        """Whether each slice of the columns has its own block; ``add_slices`` adds them."""
        ...

    @property
    def in_product_order(self) -> bool:
        """Whether rows of ``x`` have their columns in the order of ``round_rows.cu`` for warpgroups."""
        ...

    def spec(self, form: MatrixForm) -> KernelSpec:
        """Return the kernel."""
        ...


class WarpTile(msgspec.Struct, frozen=True, tag=True):
    """A tile of ``gemm.cu``, whose warps multiply independently."""

    rows: int
    split: bool
    int8: bool = False
    """Whether rows are int8, else float16."""

    tiles = TILES_OF_BLOCK
    threads = 256
    in_product_order = False

    @property
    def stages(self) -> tuple[int, int]:
        """How many stages of rows are in shared memory, and the chunks of a stage."""
        return (3 if self.rows >= 64 else 4), (4 if self.rows <= 16 else 2)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        stages, stage_chunks = self.stages
        totals = 0 if self.split else 4 * self.rows * self.tiles * TILE
        return stages * self.rows * row_stride(stage_chunks, int8=self.int8) + totals

    def spec(self, form: MatrixForm) -> KernelSpec:
        """Return the kernel."""
        stages, stage_chunks = self.stages
        macros = {"ROWS": self.rows, "SPLIT": int(self.split), "STAGES": stages, "STAGE_CHUNKS": stage_chunks}
        return KernelSpec.of("gemm", "gemm", form.defines | macros | rows_defines(int8=self.int8))


class WarpgroupTile(msgspec.Struct, frozen=True, tag=True):
    """A tile of ``gemm_warpgroup.cu``."""

    groups: int
    """Warpgroups, each with 4 tiles of 16 weight rows."""
    rows: int
    """Rows of ``x``: 64 or 128."""
    ahead: int
    """Chunks of ``x`` that are on their way to shared memory."""
    resident: int
    """Blocks that a processor has room for."""

    split = False
    in_product_order = True

    @property
    def tiles(self) -> int:
        """Tiles of 16 weight rows."""
        return 4 * self.groups

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * self.groups

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: totals, and stages that begin at a multiple of 1024 bytes."""
        totals = 4 * self.rows * self.tiles * TILE
        return totals + (self.ahead + self.groups + 1) * self.rows * CHUNK * 2 + 1008

    def spec(self, form: MatrixForm) -> KernelSpec:
        """Return the kernel."""
        macros = {"GROUPS": self.groups, "ROWS": self.rows, "AHEAD": self.ahead, "RESIDENT": self.resident}
        return KernelSpec.of("gemm_warpgroup", "gemm_warpgroup", form.defines | macros)


def rows_defines(*, int8: bool) -> dict[str, int]:
    """Return the macros of ``kernels/rows.cuh``."""
    return {"INT8": 1} if int8 else {}


def row_stride(chunks: int, *, int8: bool) -> int:
    """Return the bytes between rows of ``x`` in shared memory, as ``kernels/rows.cuh`` has them."""
    if int8:
        return -(-INT8_CHUNK_BYTES * chunks // 128) * 128 + 32
    return 2 * CHUNK * chunks + 64


def warpgroup_tiles(form: MatrixForm) -> tuple[WarpgroupTile, ...]:
    """Return the tiles of warpgroups for matrices of a form, those with the fewest bytes to read first.

    Codes and scales of a chunk, and those of the next one, are in registers: with many of them, four
    warpgroups have too few.
    """
    groups = 2 if form.bits == 16 else 3 if form.bits == 5 and form.scale_bits else 4
    tiles = WarpgroupTile(groups, 128, 1, 1), WarpgroupTile(2, 128, 2, 1), WarpgroupTile(2, 64, 2, 2)
    return tiles[1:] if groups == 2 else tiles


def choose_tile(
    runtime: Runtime, form: MatrixForm, rows: int, tiles: Sequence[int], *, int8: bool = False
) -> WarpTile | WarpgroupTile:
    """Return how to multiply ``rows`` rows by matrices, each with a number of ``tiles`` of 16 weight rows.

    ``int8`` rows have no products of warpgroups.
    """
    if runtime.warpgroups and rows >= _LEAST_ROWS_OF_WARPGROUPS and not int8:
        return min(
            warpgroup_tiles(form), key=lambda tile: _cycles(tile, form, rows, tiles, runtime.num_processors)
        )
    size = rows_of_block(form, rows, runtime.shared_bytes, int8=int8)
    split = WarpTile(size, split=True, int8=int8)
    return split if can_use(split, runtime, rows, tiles) else WarpTile(size, split=False, int8=int8)


def tile_candidates(
    runtime: Runtime, form: MatrixForm, rows: int, tiles: Sequence[int], *, int8: bool = False
) -> tuple[WarpTile | WarpgroupTile, ...]:
    """Return the tiles that may be the fastest ones, that of `choose_tile` first."""
    first = choose_tile(runtime, form, rows, tiles, int8=int8)
    most = rows_of_block(form, rows, runtime.shared_bytes, int8=int8)
    sizes = [size for size in block_sizes(form, int8=int8) if most // 2 <= size <= most]
    warps = [WarpTile(size, split=split, int8=int8) for size in sizes for split in (False, True)]
    groups = warpgroup_tiles(form) if isinstance(first, WarpgroupTile) else ()
    found = (first, *warps, *groups)
    return tuple(dict.fromkeys(tile for tile in found if can_use(tile, runtime, rows, tiles)))


def can_use(tile: GemmTile, runtime: Runtime, rows: int, tiles: Sequence[int]) -> bool:
    """Return whether there is memory for the sums of a tile's slices, if it is split.

    That is for `partial_bytes` of fewer blocks than processors.
    """
    return not tile.split or num_blocks(tile, rows, tiles) < runtime.num_processors


def num_blocks(tile: GemmTile, rows: int, tiles: Sequence[int]) -> int:
    """Return the blocks of a product, without the slices of the columns."""
    return -(-rows // tile.rows) * sum(-(-count // tile.tiles) for count in tiles)


def _cycles(
    tile: WarpgroupTile, form: MatrixForm, rows: int, tiles: Sequence[int], num_processors: int
) -> float:
    """Return about how many cycles a column of the matrices takes.

    Processors take blocks in turns. A block is bound by its products or by what it reads.
    """
    turns = -(-num_blocks(tile, rows, tiles) // num_processors)
    weights = tile.tiles * TILE
    num_bytes = weights * form.bits / 8 + tile.rows * 2
    return turns * max(weights * tile.rows / _PRODUCTS_OF_CYCLE, num_bytes / _BYTES_OF_CYCLE)


def rows_of_block(form: MatrixForm, rows: int, shared_bytes: int, *, int8: bool) -> int:
    """Return how many rows a block of ``gemm.cu`` takes; ``shared_bytes`` is `Runtime.shared_bytes`."""
    fit = [
        size
        for size in block_sizes(form, int8=int8)
        if WarpTile(size, split=False, int8=int8).shared_bytes <= shared_bytes
    ]
    return next((size for size in fit if rows <= size), fit[-1])


def block_sizes(form: MatrixForm, *, int8: bool) -> tuple[int, ...]:
    """Return the numbers of rows that a block of ``gemm.cu`` may take: registers have room for them.

    With float16 weights, fewer fit; so they do with ``int8`` rows and several scales of a chunk, if there are
    also minimums, or four scales.
    """
    several = int8 and form.has_several_scales
    few = form.bits == 16 or (several and (form.minimum or form.group == 16))
    return (16, 32, 64) if few else (16, 32, 64, MOST_ROWS_OF_BLOCK)
