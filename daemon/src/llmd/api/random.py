"""How randomness is addressed, so that host and device draw the same token.

Philox4x32-10: key = (low word, high word) of the 64-bit seed; counter = (position, choice, purpose, 0);
``u = (word0 + 0.5) * 2**-32``. Position is that of the token being drawn.

Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
"""

from __future__ import annotations

from enum import IntEnum


class Purpose(IntEnum):
    """The third counter word: what a random number is used for. Numbers never change."""

    SAMPLE = 0
    XTC = 1
