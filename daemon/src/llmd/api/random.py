"""Addresses of random numbers, so that host and device draw the same token.

Philox4x32-10: key = (low word, high word) of the 64-bit seed; counter = (position, choice, purpose, 0);
``u = (word0 + 0.5) * 2**-32``. ``position`` is the position of the token that is drawn.

Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
"""

from __future__ import annotations

from enum import IntEnum


class Purpose(IntEnum):
    """Third word of the counter: what a random number is used for. The values never change."""

    SAMPLE = 0
    """Draw a token."""
    XTC = 1
    """Decide whether XTC excludes the top choices."""
