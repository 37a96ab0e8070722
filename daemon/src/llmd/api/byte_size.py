"""Numbers of bytes as people read them."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_bytes(num_bytes: int) -> str:
    """Return a number of bytes in powers of 1024, such as ``16.8 MiB``."""
    amount = float(num_bytes)
    for unit in UNITS[:-1]:
        if amount < 1024:
            return f"{num_bytes} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {UNITS[-1]}"
