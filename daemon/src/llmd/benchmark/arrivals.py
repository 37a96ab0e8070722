"""When requests are sent."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct


class Traffic(Struct, frozen=True):
    """``rate`` requests arrive in a second; infinite: all at once.

    ``burstiness`` is the shape of the gamma distribution of the times between them: 1 is a Poisson process, below 1
    they come in bursts, above more evenly, infinite at equal distances. ``max_concurrency`` requests run at once; what
    arrives meanwhile waits in the client.
    """

    rate: float = math.inf
    burstiness: float = 1.0
    max_concurrency: int | None = None


def arrival_times(traffic: Traffic, count: int, seed: int) -> list[float]:
    """Seconds from the start at which each request arrives.

    The last one arrives at ``count / rate`` whatever was drawn, as in vLLM: seeds change the pattern, not the load.
    """
    if math.isinf(traffic.rate):
        return [0.0] * count
    if math.isinf(traffic.burstiness):
        gaps = np.ones(count)
    else:
        gaps = np.random.default_rng(seed).gamma(traffic.burstiness, size=count)
    times = np.cumsum(gaps)
    spread: list[float] = (times * (count / traffic.rate / times[-1])).tolist()
    return spread
