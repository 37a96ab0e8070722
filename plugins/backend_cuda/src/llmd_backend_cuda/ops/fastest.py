"""Which variants of products are the fastest ones of a card, by what their speed depends on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from llmd_backend_cuda.matrix_forms import MatrixForm
from llmd_backend_cuda.ops.gemm_tiles import WarpgroupTile, WarpTile

FEW_ROWS = 8
"""Most rows that one block multiplies with all of a matrix's tiles."""

ROW_CLASSES = (FEW_ROWS, 16, 32, 64, 512)
"""The most rows of each class; the last one has all larger numbers, too."""


class ProductShape(msgspec.Struct, frozen=True):
    """What the speed of a product depends on, besides its rows."""

    form: MatrixForm
    chunks: int
    """Chunks of a row."""
    tiles: tuple[int, ...]
    """Tiles of 16 weight rows of each matrix."""
    is_pair: bool
    int8: bool
    """Whether rows are rounded to int8, else to float16."""


Variant = int | WarpTile | WarpgroupTile
"""Blocks that are launched for each processor, for few rows; the tile, for many."""

Fastest = Mapping[tuple[ProductShape, int], Variant | None]
"""The fastest variants by shape and row class; None where no other one is faster than that for an H100."""


def row_class(rows: int) -> int:
    """Return the one of `ROW_CLASSES` that a number of rows belongs to."""
    return next((most for most in ROW_CLASSES if rows <= most), ROW_CLASSES[-1])
