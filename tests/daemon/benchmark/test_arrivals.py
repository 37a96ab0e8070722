"""Arrivals have the requested rate and burstiness."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from llmd.benchmark.arrivals import RampUp, Traffic, arrival_times

COUNT = 20_000


def gaps(burstiness: float, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.diff(arrival_times(Traffic(5.0, burstiness), COUNT, seed), prepend=0.0)


def test_without_a_rate_all_arrive_at_once() -> None:
    assert arrival_times(Traffic(), 3, 0) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("burstiness", [0.3, 1.0, 4.0, math.inf])
def test_the_last_arrives_when_the_rate_says_whatever_the_pattern(burstiness: float) -> None:
    times = arrival_times(Traffic(5.0, burstiness), 50, 0)
    assert times[-1] == pytest.approx(10.0)
    assert times == sorted(times)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gaps_vary_as_those_of_a_gamma_distribution(burstiness: float) -> None:
    found = gaps(burstiness)
    assert found.mean() == pytest.approx(0.2)
    # Standard deviation over mean is 1/sqrt(shape); at 20,000 gaps its sampling error is below 3 %.
    assert found.std() / found.mean() == pytest.approx(1 / math.sqrt(burstiness), rel=0.05)


def test_a_poisson_process_has_exponential_gaps() -> None:
    for quantile in (0.25, 0.5, 0.9):
        expected = -math.log(1 - quantile) * 0.2
        assert np.quantile(gaps(1.0), quantile) == pytest.approx(expected, rel=0.05)


def test_infinite_burstiness_is_equal_distances() -> None:
    assert gaps(math.inf) == pytest.approx(0.2)


def test_a_seed_repeats_the_times_and_another_does_not() -> None:
    assert (gaps(1.0, 3) == gaps(1.0, 3)).all()
    assert (gaps(1.0, 3) != gaps(1.0, 4)).any()


def test_a_rate_may_grow_by_equal_steps_or_by_equal_factors() -> None:
    def gaps_of(strategy: Literal["linear", "exponential"]) -> list[float]:
        ramp_up = RampUp(strategy, 1.0, 4.0)
        return list(np.diff(arrival_times(Traffic(math.inf, math.inf, None, ramp_up), 3, 0), prepend=0.0))

    assert gaps_of("linear") == pytest.approx([1, 1 / 2.5, 1 / 4])
    assert gaps_of("exponential") == pytest.approx([1, 1 / 2, 1 / 4])


def test_a_rate_that_grows_keeps_the_burstiness() -> None:
    times = arrival_times(Traffic(burstiness=0.25, ramp_up=RampUp("linear", 5.0, 5.0)), COUNT, 0)
    found = np.diff(times, prepend=0.0)
    assert found.mean() == pytest.approx(0.2, rel=0.05)
    assert found.std() / found.mean() == pytest.approx(2.0, rel=0.05)
