"""Integer formats: weights as small integers; groups of a row share a scale and, in some formats, a minimum.

A weight is ``scale * integer + minimum``. The integer is ``code - zero`` or ``book[code]``; the residual of
an outlier is added to it. docs/formats.md describes each format.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ROW_ACTIVATION_GROUP = 128
"""Inputs of an activation group if a weight has a single scale per row."""

SHORTEST_GROUP = 32
"""Group size of rows whose length is not a multiple of the format's group size."""


OUTLIER_STEP = 8
"""Factor of an outlier's residual: with residuals up to 127, outliers reach nine times as far as codes."""


class IntegerFormat(msgspec.Struct, frozen=True):
    """How a format represents weights as integers."""

    name: str
    """What users type, such as ``q4``."""
    bits: int
    """Codes are ``0 .. 2**bits - 1``."""
    group_size: int
    """Inputs of a row that share a scale; 0: the whole row."""
    zero: int = 0
    """Subtracted from each code."""
    has_minimum: bool = False
    """Whether each group has a minimum, which is added to its weights."""
    coarse_size: int = 0
    """Inputs that share a coarse scale; 0: scales have one level. With two levels, a scale (or minimum) is a
    coarse value times a fine value of the group, and row lengths are multiples of this size."""
    fine_bits: int = 0
    """Bits of a fine scale."""
    book: tuple[int, ...] = ()
    """16 int8 values that the codes index; empty: codes are integers themselves."""
    wide_scales: bool = False
    """Scales are powers of two in float32; else float16."""
    in_int8: bool = False
    """A weight is its coarse scale times an int8: coarse minimums are the negated coarse scales, and for each
    code ``fine scale * code - fine minimum`` is within -128 .. 127. Fine minimums then have 8 bits."""
    outliers: int = 0
    """Outliers per group of a row: an index in the group, and an int8 that is added to the integer there,
    times `OUTLIER_STEP`. Activations that multiply such weights have 9 bits, others 8."""

    def row_group_size(self, row_len: int) -> int:
        """Return the group size in rows of this length; the last group of a row may be shorter."""
        if self.group_size == 0:
            return row_len
        if self.outliers:
            return self.group_size
        return self.group_size if row_len % self.group_size == 0 else min(self.group_size, SHORTEST_GROUP)

    def activation_group(self, row_len: int) -> int:
        """Return the activations that share a scale in rows of this length; the last group may be shorter."""
        if self.group_size == 0:
            return ROW_ACTIVATION_GROUP
        return self.coarse_size or self.row_group_size(row_len)

    @property
    def activation_limit(self) -> int:
        """The largest integer that activations are rounded to."""
        return 254 if self.outliers else 127

    def weight_bytes(self, row_len: int) -> int:
        """Return the bytes of a row, rounded up: codes, float16 scales and minimums, one-byte fine values.

        Fine scales of ``in_int8`` weights have ``fine_bits`` instead.
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
"""Formats that llmd quantises plain weights to; of several with equal bits, the preferred comes first."""

INTEGER_FORMATS: Mapping[str, IntegerFormat] = {form.name: form for form in (*_OURS, *_GGUF)}
"""All integer formats by name: our own, and those of GGUF files."""
