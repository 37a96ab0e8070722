"""Byte counts are formatted for humans."""

from __future__ import annotations

import pytest

from llmd.api.byte_size import format_bytes


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 << 10, "1.5 MiB"),
        (17_600_000, "16.8 MiB"),
        (1 << 40, "1.0 TiB"),
        (3000 << 40, "3000.0 TiB"),
    ],
)
def test_sizes_are_readable(num_bytes: int, text: str) -> None:
    assert format_bytes(num_bytes) == text
