"""Arrival times of requests."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class RampUp(Struct, frozen=True):
    """A rate that changes from the first request to the last, in equal steps or by equal factors."""

    strategy: Literal["linear", "exponential"]
    start_rps: float
    end_rps: float

    def rates(self, count: int) -> NDArray[np.float64]:
        """Return the arrival rate at each request."""
        spaced = np.linspace if self.strategy == "linear" else np.geomspace
        return spaced(self.start_rps, self.end_rps, count)


class Traffic(Struct, frozen=True):
    """When requests arrive and how many run at once."""

    rate: float = math.inf
    """Requests per second; infinite: all at once."""
    burstiness: float = 1.0
    """Shape of the gamma distribution of the gaps between requests.

    1 is a Poisson process, below 1 they arrive in bursts, above 1 more evenly; infinite: in equal gaps.
    """
    max_concurrency: int | None = None
    """Requests that run at once; others wait in the client. None: no limit."""
    ramp_up: RampUp | None = None
    """Replaces ``rate``."""


def arrival_times(traffic: Traffic, count: int, seed: int) -> list[float]:
    """Return the seconds from the start at which each request arrives.

    At a constant rate the last request always arrives at ``count / rate``, as in vLLM: the seed changes the
    pattern, not the load.
    """
    if traffic.ramp_up is None and math.isinf(traffic.rate):
        return [0.0] * count
    gaps = np.ones(count)
    if not math.isinf(traffic.burstiness):
        gaps = np.random.default_rng(seed).gamma(traffic.burstiness, 1 / traffic.burstiness, count)
    if traffic.ramp_up is not None:
        times = np.cumsum(gaps / traffic.ramp_up.rates(count))
    else:
        times = np.cumsum(gaps)
        times *= count / traffic.rate / times[-1]
    listed: list[float] = times.tolist()
    return listed
