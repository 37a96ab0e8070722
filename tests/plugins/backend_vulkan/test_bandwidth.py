"""Reading is measured on memory that caches do not hold."""

from __future__ import annotations

from llmd_backend_vulkan.bandwidth import read_rate
from llmd_backend_vulkan.memory import Arena


def test_a_rate_is_measured_within_little_memory(arena: Arena) -> None:
    rate = read_rate(arena, 0.0, free_bytes=1 << 20)
    assert 1e6 < rate < 1e14


def test_the_memory_is_given_back(arena: Arena) -> None:
    held = arena.take(1)
    free = arena.free_bytes
    read_rate(arena, 0.0, free_bytes=1 << 20)
    assert arena.free_bytes == free
    assert held.num_words == 64
