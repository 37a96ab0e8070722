"""What a work group of a product computes. It does not change the bits of a result."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

MEASURED_ROWS = (1, 8, 32, 256)
"""Rows of x for which tiles are measured."""

_MOST_COLS = 8
_HIGH = 512
_FEW_ROWS = 16
"""Rows for which weights are better read twice than brought to shared memory for 32 rows."""


class Tile(Struct, frozen=True):
    """What a work group computes."""

    rows: int
    """Weight rows of a thread; ``linear.comp``: of the threads that share a row."""
    cols: int
    """Rows of x of a thread."""
    threads: int
    shared_rows: int = 0
    """Weight rows that a work group brings to shared memory (``linear_tiles.comp``); 0: ``linear.comp``."""
    depth: int = 0
    """Elements of a row that it brings at once."""

    @property
    def all_cols(self) -> int:
        """Rows of x of a work group."""
        return self.threads * self.rows // self.shared_rows * self.cols if self.shared_rows else self.cols

    def for_rows(self, rows: int) -> Tile:
        """Return the tile for another number of rows of x: without shared memory, it has no more columns."""
        return self if self.shared_rows else structs.replace(self, cols=_cols_of(rows))


LARGE_TILES = (
    Tile(4, 4, 128, shared_rows=64, depth=16),
    Tile(8, 4, 128, shared_rows=64, depth=16),
    Tile(8, 4, 128, shared_rows=64, depth=32),
    Tile(8, 8, 128, shared_rows=128, depth=16),
)
"""Tiles through shared memory: of 64 weight rows and 32 rows of x, of 64 and 64, and of 128 and 64."""


def default_tile(rows: int, height: int) -> Tile:
    """Return the tile for ``rows`` rows of x and ``height`` weight rows if none was measured."""
    if rows > _FEW_ROWS:
        return LARGE_TILES[0] if rows <= LARGE_TILES[0].all_cols else LARGE_TILES[1]
    cols = _cols_of(rows)
    return Tile(4, cols, 256 if rows > cols and height >= _HIGH else 64)


def measured_rows(rows: int) -> int:
    """Return the one of `MEASURED_ROWS` whose tile serves ``rows`` rows of x."""
    if rows <= 2:
        return 1
    return 8 if rows <= _FEW_ROWS else 32 if rows <= LARGE_TILES[0].all_cols else 256


def candidates(rows: int) -> Sequence[Tile]:
    """Return the tiles of which the fastest is chosen for one of `MEASURED_ROWS`."""
    if rows > _FEW_ROWS:  # where shared memory is slow, reading weights again is faster
        return (*LARGE_TILES, Tile(4, _MOST_COLS, 64), Tile(4, _MOST_COLS, 256))
    cols = _cols_of(rows)
    return [Tile(own, cols, threads) for own in ((1, 2, 4) if cols == 1 else (2, 4)) for threads in (64, 256)]


def distinct_tiles(most: int) -> tuple[int, ...]:
    """Return numbers of rows, up to ``most``, that have all tiles."""
    return tuple(sorted({rows for rows in (1, 2, 4, 8, 16, 32) if rows <= most} | {most}))


def _cols_of(rows: int) -> int:
    return min(1 << (rows - 1).bit_length(), _MOST_COLS)
