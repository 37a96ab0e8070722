"""When requests are sent."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class RampUp(Struct, frozen=True):
    """A rate that changes over the load from the first request to the last: by equal steps, or by equal factors."""

    strategy: Literal["linear", "exponential"]
    start_rps: float
    end_rps: float

    def rates(self, count: int) -> NDArray[np.float64]:
        """The rate at which each request arrives."""
        spaced = np.linspace if self.strategy == "linear" else np.geomspace
        return spaced(self.start_rps, self.end_rps, count)


class Traffic(Struct, frozen=True):
    """``rate`` requests arrive in a second; infinite: all at once. A ``ramp_up`` stands in for it.

    ``burstiness`` is the shape of the gamma distribution of the times between them: 1 is a Poisson process, below 1
    they come in bursts, above more evenly, infinite at the distances that the rate says. ``max_concurrency`` requests
    run at once; what arrives meanwhile waits in the client.
    """

    rate: float = math.inf
    burstiness: float = 1.0
    max_concurrency: int | None = None
    ramp_up: RampUp | None = None


def arrival_times(traffic: Traffic, count: int, seed: int) -> list[float]:
    """Seconds from the start at which each request arrives.

    At one rate the last one arrives at ``count / rate`` whatever was drawn, as in vLLM: seeds change the pattern, not
    the load.
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
