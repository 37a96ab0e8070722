"""Steps are recorded for few sizes."""

from __future__ import annotations

from llmd_backend_vulkan.buckets import bucket_of


def test_buckets_are_powers_of_two_then_multiples_of_64() -> None:
    assert [bucket_of(count, 1000) for count in (0, 1, 2, 3, 5, 33, 64, 65, 129)] == [
        0,
        1,
        2,
        4,
        8,
        64,
        64,
        128,
        192,
    ]


def test_no_bucket_is_larger_than_a_step_may_be() -> None:
    assert [bucket_of(count, 100) for count in (33, 65, 100)] == [64, 100, 100]
