"""Fits a linear trend with a confidence interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

CONFIDENCE = 0.95


class Trend(Struct, frozen=True):
    """The slope of a fitted line per unit of x, with its 95 % confidence interval."""

    slope: float
    low: float
    high: float


def trend(x: Sequence[float], y: Sequence[float]) -> Trend:
    """Fit a line by least squares. The points must be independent, such as means of long enough parts.

    Raises:
        ValueError: there are fewer than four points.
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
    """Return a quantile of Student's t distribution, within 2 % from 2 degrees of freedom, within 0.01 % from
    9.

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
    """Return the means of ``parts`` equal parts of a series, in order; a remainder at the end is ignored."""
    length = len(values) // parts
    return [statistics.fmean(values[place * length : (place + 1) * length]) for place in range(parts)]
