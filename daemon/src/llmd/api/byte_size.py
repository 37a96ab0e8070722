"""Byte counts for humans."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
"""Each unit is 1024 of the unit before it."""


def format_bytes(num_bytes: int) -> str:
    """Format a byte count in powers of 1024, such as ``16.8 MiB``."""
    amount = float(num_bytes)
    for unit in UNITS[:-1]:
        if amount < 1024:
            return f"{num_bytes} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {UNITS[-1]}"
