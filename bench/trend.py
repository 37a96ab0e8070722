"""Whether a figure grows with time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

CONFIDENCE = 0.95


class Trend(Struct, frozen=True):
    """The slope of a straight line through points, per unit of x, with the interval that holds it with 95 % confidence."""

    slope: float
    low: float
    high: float


def trend(x: Sequence[float], y: Sequence[float]) -> Trend:
    """Fit by least squares. Points are taken to be independent: give means of parts that are long enough.

    Raises:
        ValueError: fewer than four points.
    """
    freedom = len(x) - 2
    if freedom < 2:
        raise ValueError(f"a trend needs four points at least, and there are {len(x)}")
    line = statistics.linear_regression(x, y)
    middle = statistics.fmean(x)
    left = sum((b - line.intercept - line.slope * a) ** 2 for a, b in zip(x, y, strict=True))
    error = math.sqrt(left / freedom / sum((a - middle) ** 2 for a in x))
    reach = error * t_quantile(0.5 + CONFIDENCE / 2, freedom)
    return Trend(line.slope, line.slope - reach, line.slope + reach)


def t_quantile(share: float, freedom: int) -> float:
    """Of Student's distribution, to 2 in a hundred from two degrees of freedom on, to 1 in 10 000 from nine.

    Source: Abramowitz and Stegun 1964, "Handbook of Mathematical Functions", 26.7.5.
    """
    z = statistics.NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, 1))


def means(values: Sequence[float], parts: int) -> list[float]:
    """The means of so many equal parts of a series, in order; what is left over at its end counts to no part."""
    length = len(values) // parts
    return [statistics.fmean(values[place * length : (place + 1) * length]) for place in range(parts)]
