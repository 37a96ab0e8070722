"""Measures which tiles multiply fastest, once for each device, driver and shader.

The times of a matrix depend on its form and its sizes, so that each shape of a model has tiles of its own.
They are kept in the user's cache. Results do not depend on them.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from platformdirs import PlatformDirs

from llmd.api.decoding import prepared
from llmd.api.errors import DeviceMemoryError, MemoryBudgetError
from llmd_backend_vulkan.commands import WORD
from llmd_backend_vulkan.context import NONE, stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix, MatrixForm
from llmd_backend_vulkan.memory import ALIGNMENT, Arena, Region
from llmd_backend_vulkan.ops.linear import Target, first_rows, products
from llmd_backend_vulkan.runtime import Recording
from llmd_backend_vulkan.shaders import spirv
from llmd_backend_vulkan.tiles import MEASURED_ROWS, Tile, candidates
from llmd_backend_vulkan.vulkan import PhysicalDevice

log = logging.getLogger(__name__)

_MOST_STEP = 16
"""Elements that a shader sums before it scales them."""
_MOST_HEIGHT = 8192
"""Rows of a matrix that are multiplied."""
_FEWEST_WEIGHTS = 1 << 16
"""Smaller matrices take no longer than any launch."""
_RUN_S = 0.004
"""Seconds of a run, of as many products as that takes."""
_LONG_S = 0.1
"""A product that takes this long is not run again."""
_MOST_PRODUCTS = 64
_RUNS = 3
_LIMIT_S = 60.0


class Choice(Struct, frozen=True):
    """The fastest tiles of a shape."""

    form: MatrixForm
    height: int
    width: int
    tiles: dict[int, Tile]
    """By one of `MEASURED_ROWS`."""


class Tuner:
    """Finds the fastest tiles of a device for each shape of a matrix."""

    def __init__(
        self, arena: Arena, folder: Path, seconds: Callable[[DeviceMatrix, Tile, int], float] | None = None
    ) -> None:
        """``folder`` keeps what was measured; ``seconds`` measures a product, in tests."""
        self._arena = arena
        self._path = folder / f"tiles-{_digest(arena.runtime.device)}.json"
        self._seconds = seconds or self._measured
        self._known = {(one.form, one.height, one.width): one.tiles for one in _read(self._path)}

    def tiles(self, matrix: DeviceMatrix) -> Mapping[int, Tile]:
        """Return the fastest tiles of a matrix; measure them if they are not known. None of a small matrix.

        Raises:
            DeviceLostError: the device does not answer.
        """
        key = matrix.form, matrix.height, matrix.width
        if matrix.height * matrix.width < _FEWEST_WEIGHTS:
            return {}
        if key not in self._known:
            log.info("measuring products by a matrix of %d x %d on %s", *key[1:], self._arena.runtime.name)
            try:
                self._known[key] = {rows: self._fastest(matrix, rows) for rows in MEASURED_ROWS}
            except (DeviceMemoryError, MemoryBudgetError) as error:
                log.warning("products are not measured: %s", error.message)
                return {}
            choices = [Choice(*known, tiles) for known, tiles in self._known.items()]
            with contextlib.suppress(OSError):  # they are measured again
                _write(self._path, choices)
        return self._known[key]

    def _fastest(self, matrix: DeviceMatrix, rows: int) -> Tile:
        device = self._arena.runtime.device
        fitting = [
            tile
            for tile in candidates(rows)
            if shared_bytes(tile, matrix.form) <= device.shared_bytes
            and tile.threads <= device.most_invocations
        ]
        return min(fitting, key=lambda tile: self._seconds(matrix, tile, rows))

    def _measured(self, matrix: DeviceMatrix, tile: Tile, rows: int) -> float:
        """Return the seconds of a product with ``rows`` rows of zeros."""
        part = first_rows(matrix, _MOST_HEIGHT)
        with _work(self._arena, part, rows) as (work, target):
            phase = list(products(work.buffer, part, (work.buffer, NONE), target, tile, rows))
            once = self._arena.runtime.record([phase])
            once_s = min(_timed(once) for _ in range(2))
            if once_s > _LONG_S:
                return once_s
            count = max(1, min(_MOST_PRODUCTS, math.ceil(_RUN_S / max(once_s, 1e-6))))
            recording = self._arena.runtime.record([phase] * count)
            return min(_timed(recording) for _ in range(_RUNS)) / count


def default_folder() -> Path:
    """Return the folder of measured tiles in the user's cache of llmd."""
    return Path(PlatformDirs("llmd", appauthor=False).user_cache_dir) / "kernels" / "vulkan"


def shared_bytes(tile: Tile, form: MatrixForm) -> int:
    """Return the bytes of shared memory that a tile needs for a matrix of a form."""
    if not tile.shared_rows:
        return WORD * tile.cols * (tile.threads + 1)
    steps = tile.depth // min(form.chunk, _MOST_STEP)
    scales = 2 * steps * tile.shared_rows if form.has_scales else 2
    sums = steps * tile.all_cols if form.has_minimums else 1
    return WORD * (tile.depth * (tile.shared_rows + tile.all_cols) + scales + sums)


def _timed(recording: Recording) -> float:
    """Return the seconds of a run."""
    started = time.perf_counter()
    recording.run(_LIMIT_S, "multiply")
    return time.perf_counter() - started


@contextlib.contextmanager
def _work(arena: Arena, matrix: DeviceMatrix, rows: int) -> Iterator[tuple[Region, Target]]:
    """Take memory for a product with ``rows`` rows of zeros.

    Raises:
        MemoryBudgetError: there is not enough.
    """
    x_words, out_stride = rows * stride_of(matrix.width), stride_of(matrix.height)
    work = arena.take(ALIGNMENT + x_words + rows * out_stride)
    arena.fill_zero(work)
    arena.upload(work, 0, np.array([rows], np.uint32))
    x = work.at + ALIGNMENT
    yield work, Target(x, stride_of(matrix.width), x + x_words, out_stride, work.at)


def _digest(device: PhysicalDevice) -> str:
    """Return what the speed of tiles depends on, in short."""
    facts = (device.name, device.driver, device.uuid, spirv("linear"), spirv("linear_tiles"))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _read(path: Path) -> list[Choice]:
    """Return what a file keeps; nothing if there is none that can be used."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=prepared(list[Choice]))
    except (OSError, msgspec.MsgspecError):
        return []


def _write(path: Path, choices: list[Choice]) -> None:
    """Replace a file: readers see all of it or nothing.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = path.with_suffix(f".{os.getpid()}")
    ours.write_bytes(msgspec.json.encode(choices))
    ours.replace(path)
