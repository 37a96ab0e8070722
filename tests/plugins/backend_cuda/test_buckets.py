"""Sizes that launches are made for."""

from __future__ import annotations

import pytest

from llmd_backend_cuda.buckets import LARGEST_GRAPH, bucket_of, row_buckets


@pytest.mark.parametrize(
    ("count", "bucket"),
    [(0, 0), (1, 1), (2, 2), (3, 4), (33, 64), (64, 64), (65, 128), (129, 192), (990, 1000)],
)
def test_buckets_are_powers_of_two_and_then_multiples_of_64(count: int, bucket: int) -> None:
    assert bucket_of(count, 1000) == bucket


@pytest.mark.parametrize("most", [1, 2, 3, 20, 64, 65, 200])
def test_each_size_has_a_bucket(most: int) -> None:
    buckets = row_buckets(most)
    assert list(buckets) == sorted(set(buckets))
    assert buckets[-1] == most
    for count in range(1, most + 1):
        assert bucket_of(count, most) == min(size for size in buckets if size >= count)


def test_few_rows_are_padded_to_less_than_twice_their_number() -> None:
    assert all(bucket_of(count, 4096) < 2 * count for count in range(1, 4097) if count > 1)
    assert LARGEST_GRAPH in row_buckets(4096)
