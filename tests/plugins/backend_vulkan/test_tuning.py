"""Tiles are measured once, kept, and change no results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from llmd.api import DeviceOptions, Format, MemoryBudgetError, TensorRef, Weight
from llmd.testing.conformance import cases_for
from llmd.testing.runs import LoadedWorkload
from llmd.testing.sources import RandomSource
from llmd.testing.workload import all_at_once
from llmd_backend_vulkan import tuning
from llmd_backend_vulkan.device import VulkanDevice, describe
from llmd_backend_vulkan.matrices import DeviceMatrix, MatrixForm, load_matrix
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.tiles import LARGE_TILES, MEASURED_ROWS, Tile, candidates
from llmd_backend_vulkan.tuning import Tuner, shared_bytes
from llmd_backend_vulkan.vulkan import PhysicalDevice


def matrix_of(arena: Arena, name: Format = "q4", height: int = 512, width: int = 128) -> DeviceMatrix:
    return load_matrix(arena, RandomSource().read(Weight(TensorRef("m", (height, width)), name)))


def never(_matrix: DeviceMatrix, _tile: Tile, _rows: int) -> float:
    raise AssertionError("it is known")


def last_is_fastest(_matrix: DeviceMatrix, tile: Tile, rows: int) -> float:
    return -float(list(candidates(rows)).index(tile))


def test_the_fastest_tile_is_chosen_and_kept(arena: Arena, tmp_path: Path) -> None:
    matrix = matrix_of(arena)
    found = Tuner(arena, tmp_path, last_is_fastest).tiles(matrix)
    assert found == {rows: candidates(rows)[-1] for rows in MEASURED_ROWS}
    assert Tuner(arena, tmp_path, never).tiles(matrix) == found
    with pytest.raises(AssertionError, match="known"):
        Tuner(arena, tmp_path, never).tiles(matrix_of(arena, height=1024))


def test_another_driver_is_measured_again(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tuner(arena, tmp_path, last_is_fastest).tiles(matrix_of(arena))
    monkeypatch.setattr(
        arena.runtime, "device", structs.replace(arena.runtime.device, driver="a later version")
    )
    with pytest.raises(AssertionError, match="known"):
        Tuner(arena, tmp_path, never).tiles(matrix_of(arena))


@pytest.mark.parametrize("content", [b"", b"{}", b'[{"form": 1}]', b"\xff"])
def test_a_file_that_cannot_be_used_is_replaced(arena: Arena, tmp_path: Path, content: bytes) -> None:
    matrix = matrix_of(arena)
    Tuner(arena, tmp_path, last_is_fastest).tiles(matrix)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    assert Tuner(arena, tmp_path, last_is_fastest).tiles(matrix)
    assert Tuner(arena, tmp_path, never).tiles(matrix)


def test_a_folder_that_cannot_be_written_only_costs_time(arena: Arena, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Tuner(arena, tmp_path / "file" / "folder", last_is_fastest).tiles(matrix_of(arena))


def test_small_matrices_are_not_measured(arena: Arena, tmp_path: Path) -> None:
    assert Tuner(arena, tmp_path, never).tiles(matrix_of(arena, height=100)) == {}


def test_without_memory_nothing_is_measured(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = matrix_of(arena)

    def full(_num_words: int, *, alone: bool = False) -> None:
        raise MemoryBudgetError("the card is full", hint="use a smaller model")

    monkeypatch.setattr(arena, "take", full)
    assert Tuner(arena, tmp_path).tiles(matrix) == {}
    assert list(tmp_path.iterdir()) == []


def test_tiles_that_do_not_fit_are_not_tried(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = structs.replace(arena.runtime.device, shared_bytes=8 << 10, most_invocations=128)
    monkeypatch.setattr(arena.runtime, "device", small)
    tried: list[Tile] = []

    def note(_matrix: DeviceMatrix, tile: Tile, _rows: int) -> float:
        tried.append(tile)
        return 0.0

    Tuner(arena, tmp_path, note).tiles(matrix_of(arena))
    assert LARGE_TILES[0] in tried
    assert LARGE_TILES[2] not in tried
    assert max(tile.threads for tile in tried) == 128


def test_tiles_need_a_known_amount_of_shared_memory() -> None:
    q4, f32, with_minimums = MatrixForm(4, scales=1), MatrixForm(32), MatrixForm(2, scales=2)
    assert [shared_bytes(tile, q4) for tile in LARGE_TILES] == [6660, 8708, 17412, 13316]
    assert [shared_bytes(tile, f32) for tile in LARGE_TILES] == [6156, 8204, 16396, 12300]
    assert shared_bytes(LARGE_TILES[2], with_minimums) == 32 * 128 * 4 + 2 * (64 * 8 + 64 * 4)
    assert shared_bytes(Tile(4, 8, 64), q4) == 8 * 65 * 4


def test_products_of_a_device_are_measured(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "_RUN_S", 1e-4)
    found = Tuner(arena, tmp_path).tiles(matrix_of(arena))
    assert all(tile in candidates(rows) for rows, tile in found.items())
    assert sorted(found) == list(MEASURED_ROWS)


@pytest.mark.parametrize("choose", [pytest.param(min, marks=pytest.mark.exhaustive), max])
def test_measured_tiles_change_no_bits(
    physical: PhysicalDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    choose: Callable[[tuple[int, int]], int],
) -> None:
    case = next(case for case in cases_for(describe(physical)) if case.name == "linear/q3-activations-f32")
    plain, tuned = VulkanDevice(physical, DeviceOptions()), VulkanDevice(physical, DeviceOptions())

    def seconds(_matrix: DeviceMatrix, tile: Tile, rows: int) -> float:
        place = list(candidates(rows)).index(tile)
        return float(choose((place, -place)))

    monkeypatch.setattr(tuning, "_FEWEST_WEIGHTS", 1)
    monkeypatch.setattr(tuned, "_tuner", Tuner(tuned._opened(), tmp_path, seconds))
    rows = []
    for device in (plain, tuned):
        with LoadedWorkload(device, case) as loaded:
            rows.append(loaded.run(all_at_once(case)).rows)
    assert list(tmp_path.iterdir()) != []
    assert all(np.array_equal(rows[0][place], rows[1][place]) for place in rows[0])
