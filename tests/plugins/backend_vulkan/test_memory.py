"""Regions are cut from few buffers, given back and joined again."""

from __future__ import annotations

import numpy as np
import pytest

from llmd_backend_vulkan import memory
from llmd_backend_vulkan.memory import Arena, HostArena, as_words, copy_step
from llmd_backend_vulkan.runtime import Runtime


def test_contents_are_copied_there_and_back(arena: Arena) -> None:
    region, other = arena.take(1000), arena.take(100)
    words = np.random.default_rng(1).integers(0, 1 << 32, 1000, np.uint32)
    arena.fill_zero(region)
    arena.fill_zero(other)
    arena.upload(region, 10, words[:900])
    expected = np.concatenate([np.zeros(10, np.uint32), words[:900], np.zeros(90, np.uint32)])
    assert np.array_equal(arena.download(region, 0, 1000), expected)
    assert not arena.download(other, 0, 100).any()


def test_what_is_larger_than_the_staging_memory_is_copied_in_parts(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_STAGING_WORDS", 64)
    region = arena.take(500)
    words = np.arange(500, dtype=np.uint32)
    arena.upload(region, 0, words)
    assert np.array_equal(arena.download(region, 0, 500), words)


def test_the_arrays_of_a_step_are_copied_as_far_as_they_go(arena: Arena) -> None:
    arrays, target = arena.runtime.host(90), arena.take(100)
    arena.fill_zero(target)
    arrays.view[:90] = np.arange(90)
    arrays.view[3] = 70
    arena.runtime.run([[copy_step(arrays, target.buffer, target.at + 10, 90)]])
    copied = arena.download(target, 10, 90)
    assert np.array_equal(copied[:70], arrays.view[:70])
    assert not copied[70:].any()


def test_regions_do_not_overlap_and_holes_are_used_again(arena: Arena) -> None:
    regions = [arena.take(100) for _ in range(4)]
    assert len({region.at for region in regions}) == 4
    assert all(region.at % memory.ALIGNMENT == 0 and region.num_words == 128 for region in regions)
    place = regions[1].at
    del regions[1]
    assert arena.take(128).at == place


def test_neighbouring_holes_become_one(arena: Arena) -> None:
    regions = [arena.take(64) for _ in range(3)]
    free = arena.free_bytes
    del regions
    assert arena.free_bytes == free + 3 * 64 * 4
    assert arena.take(3 * 64).at == 0


def test_the_first_buffer_stays_and_later_ones_are_freed(arena: Arena) -> None:
    first, second = arena.take(1), arena.take(5 << 20)
    assert first.buffer is not second.buffer
    total = arena.num_bytes
    del second
    assert arena.num_bytes < total
    del first
    assert arena.num_bytes == 16 << 20


def test_a_region_may_have_a_buffer_of_its_own(arena: Arena) -> None:
    first, alone = arena.take(64), arena.take(64, alone=True)
    assert alone.buffer is not first.buffer
    assert (alone.buffer.num_words, alone.at) == (64, 0)
    assert arena.take(64).buffer is first.buffer
    total = arena.num_bytes
    del alone
    assert arena.num_bytes == total - 4 * 64


def test_memory_of_the_host_is_written_in_place_and_all_given_back(runtime: Runtime) -> None:
    arena = HostArena(runtime)
    before = runtime.num_submissions
    region = arena.take(100)
    arena.upload(region, 10, np.arange(50, dtype=np.uint32))
    assert region.buffer.view[region.at + 10 : region.at + 60].tolist() == list(range(50))
    assert runtime.num_submissions == before
    del region
    assert arena.num_bytes == 0


def test_bytes_are_filled_up_to_words() -> None:
    assert as_words(np.array([1, 2, 3, 4, 5], np.uint8)).tolist() == [0x04030201, 5]
    assert as_words(np.array([[1.0, 2.0]], np.float32)).tolist() == [0x3F800000, 0x40000000]
