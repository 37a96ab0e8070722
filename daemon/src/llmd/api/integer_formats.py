"""The integer formats: weights as small integers in groups along a row that share a scale, and maybe a minimum.

A weight is ``scale * integer + minimum``; its integer is ``code - zero``, or what the code book has for the code, and a
residual more where it is an outlier.
docs/formats.md describes each format.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ROW_ACTIVATION_GROUP = 128
"""Inputs of an activation group where a weight has one scale for a whole row."""

SHORTEST_GROUP = 32
"""The group size of a row that the group size of its format does not divide."""


OUTLIER_STEP = 8
"""What the residual of an outlier is multiplied by: 127 of them reach nine times as far as codes do."""


class IntegerFormat(msgspec.Struct, frozen=True):
    """How the weights of a format are made of integers.

    Codes are ``0 .. 2**bits - 1``. ``group_size`` inputs of a row share a scale, all of them where it is 0.
    ``zero`` is subtracted from a code; ``has_minimum`` says that a number is added to every weight of a group.
    Where ``coarse_size`` is not 0, scales have two levels: a coarse one for so many inputs, times a fine one of ``fine_bits``
    for a group, and so have minimums. Rows are then whole multiples of ``coarse_size``.
    Codes of a format with a ``book`` are places in it: 16 int8 values. ``wide_scales`` are powers of two in float32, others
    float16.
    Where weights are ``in_int8`` a coarse minimum is its coarse scale times -1, and ``fine scale * code - fine minimum`` lies
    within -128 .. 127 for every code: a weight is its coarse scale times an int8. Fine minimums then have 8 bits.
    Each group of a row has so many ``outliers``: a place in the group, and an int8 that is added to the integer there, times
    `OUTLIER_STEP`.
    Activations that they multiply have 9 bits, others 8.
    """

    name: str
    bits: int
    group_size: int
    zero: int = 0
    has_minimum: bool = False
    coarse_size: int = 0
    fine_bits: int = 0
    book: tuple[int, ...] = ()
    wide_scales: bool = False
    in_int8: bool = False
    outliers: int = 0

    def row_group_size(self, row_len: int) -> int:
        """Inputs that share a scale in rows of this length; the last group of a row may be short."""
        if self.group_size == 0:
            return row_len
        if self.outliers:
            return self.group_size
        return self.group_size if row_len % self.group_size == 0 else min(self.group_size, SHORTEST_GROUP)

    def activation_group(self, row_len: int) -> int:
        """Activations of rows of this length that are rounded with one scale; the last of a row may be fewer."""
        if self.group_size == 0:
            return ROW_ACTIVATION_GROUP
        return self.coarse_size or self.row_group_size(row_len)

    @property
    def activation_limit(self) -> int:
        """The largest integer that activations are rounded to."""
        return 254 if self.outliers else 127

    def weight_bytes(self, row_len: int) -> int:
        """Bytes of a row of weights, rounded up: codes of ``bits`` bits, float16 scales and minimums, fine ones of a byte.

        Fine scales of ``in_int8`` weights have ``fine_bits``.
        """
        codes = -(-row_len * self.bits // 8)
        groups = -(-row_len // max(self.row_group_size(row_len), 1))
        blocks = -(-row_len // self.coarse_size) if self.coarse_size else 0
        if self.in_int8:
            return codes + -(-groups * self.fine_bits // 8) + groups + 2 * blocks
        scales = groups + 2 * blocks if self.coarse_size else 2 * groups
        return codes + scales * (1 + self.has_minimum) + groups * 2 * self.outliers


_NONLINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

_OURS = (
    IntegerFormat("q8", 8, 64, zero=128),
    IntegerFormat("q8_g32", 8, 32, zero=128),
    IntegerFormat("q8_g128", 8, 128, zero=128),
    IntegerFormat("q8_row", 8, 0, zero=128),
    IntegerFormat("q8_wide", 8, 256, zero=128, outliers=4),
    IntegerFormat("q4", 4, 32, has_minimum=True, coarse_size=256, fine_bits=4, in_int8=True),
    IntegerFormat("q3", 3, 32, has_minimum=True, coarse_size=256, fine_bits=8, in_int8=True),
    IntegerFormat("q2", 2, 16, has_minimum=True, coarse_size=256, fine_bits=8, in_int8=True),
    *(
        IntegerFormat(f"q{bits}_g{size}", bits, size, has_minimum=True)
        for bits in (4, 3, 2)
        for size in (32, 64, 128)
    ),
    *(
        IntegerFormat(f"q{bits}_g{size}_sym", bits, size, zero=1 << (bits - 1))
        for bits in (4, 3, 2)
        for size in (32, 64, 128)
    ),
)

_GGUF = (
    IntegerFormat("q4_0", 4, 32, zero=8),
    IntegerFormat("q4_1", 4, 32, has_minimum=True),
    IntegerFormat("q5_0", 5, 32, zero=16),
    IntegerFormat("q5_1", 5, 32, has_minimum=True),
    IntegerFormat("q8_0", 8, 32, zero=128),
    IntegerFormat("q2_k", 2, 16, has_minimum=True, coarse_size=256, fine_bits=4),
    IntegerFormat("q3_k", 3, 16, zero=4, coarse_size=256, fine_bits=6),
    IntegerFormat("q4_k", 4, 32, has_minimum=True, coarse_size=256, fine_bits=6),
    IntegerFormat("q5_k", 5, 32, has_minimum=True, coarse_size=256, fine_bits=6),
    IntegerFormat("q6_k", 6, 16, zero=32, coarse_size=256, fine_bits=8),
    IntegerFormat("iq4_nl", 4, 32, book=_NONLINEAR),
    IntegerFormat("iq4_xs", 4, 32, coarse_size=256, fine_bits=6, book=_NONLINEAR),
    IntegerFormat("mxfp4", 4, 32, book=_E2M1, wide_scales=True),
)

OWN_FORMATS: tuple[str, ...] = tuple(form.name for form in _OURS)
"""The integer formats that plain weights are quantised to; of those with equally many bits, the preferred first."""

INTEGER_FORMATS: Mapping[str, IntegerFormat] = {form.name: form for form in (*_OURS, *_GGUF)}
"""Every integer format by its name: our own, and those of GGUF files."""
