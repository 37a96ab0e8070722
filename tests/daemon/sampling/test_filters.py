"""What each sampler keeps of a few tokens with simple probabilities; `test_sampler` tests the formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from llmd.api.samplers import DynamicTemperature, Xtc
from llmd.sampling import filters
from llmd.sampling.shortlist import Moments, Shortlist

HALVES = (0.5, 0.25, 0.125, 0.0625, 0.0625)


def listed(*probabilities: float, ends: bool = True) -> Shortlist:
    logits = np.log(np.array(probabilities))
    return Shortlist(np.arange(len(probabilities), dtype=np.int32), logits, ends, 0.0)


def kept(found: Shortlist | None) -> list[int] | None:
    return None if found is None else found.ids.tolist()


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        (lambda x: filters.top_k(x, 2), [0, 1]),
        (lambda x: filters.top_k(x, 9), [0, 1, 2, 3, 4]),
        (lambda x: filters.top_p(x, 0.5), [0]),
        (lambda x: filters.top_p(x, 0.51), [0, 1]),
        (lambda x: filters.top_p(x, 0.9999), [0, 1, 2, 3, 4]),
        (lambda x: filters.min_p(x, 0.25), [0, 1, 2]),
        (lambda x: filters.min_p(x, 0.01), [0, 1, 2, 3, 4]),
        (lambda x: filters.typical(x, 0.2), [1]),
        (lambda x: filters.typical(x, 0.7), [0, 1]),
        (lambda x: filters.top_n_sigma(x, 1.0), [0, 1]),
        (lambda x: filters.xtc(x, Xtc(0.5, 0.1), 0.4), [2, 3, 4]),
        (lambda x: filters.xtc(x, Xtc(0.5, 0.1), 0.6), [0, 1, 2, 3, 4]),
        (lambda x: filters.xtc(x, Xtc(0.5, 0.3), 0.4), [0, 1, 2, 3, 4]),
        (lambda x: filters.xtc(x, Xtc(0.5, 0.6), 0.4), [0, 1, 2, 3, 4]),
    ],
)
def test_a_sampler_keeps_what_its_definition_says(
    narrow: Callable[[Shortlist], Shortlist | None], expected: list[int]
) -> None:
    assert kept(narrow(listed(*HALVES))) == expected


def test_typical_prefers_the_middle_to_the_top() -> None:
    assert kept(filters.typical(listed(0.6, 0.1, 0.1, 0.1, 0.1), 0.5)) == [0]
    assert kept(filters.typical(listed(0.3, 0.175, 0.175, 0.175, 0.175), 0.3)) == [1, 2]


@pytest.mark.parametrize(
    "narrow",
    [
        lambda x: filters.top_k(x, 9),
        lambda x: filters.top_p(x, 0.99),
        lambda x: filters.min_p(x, 0.01),
        lambda x: filters.typical(x, 0.1),
        lambda x: filters.top_n_sigma(x, 0.1),
        lambda x: filters.xtc(x, Xtc(0.5, 0.01), 0.4),
        lambda x: filters.dynamic_temperature(x, 1.0, DynamicTemperature(0.5)),
    ],
)
def test_what_depends_on_tokens_beyond_the_list_is_not_decided(
    narrow: Callable[[Shortlist], Shortlist | None],
) -> None:
    assert narrow(listed(0.4, 0.3, 0.1, ends=False)) is None


def beginning(*probabilities: float, kept: int) -> Shortlist:
    """Return the best tokens of a row, with a device's statistics of all tokens."""
    whole = listed(*probabilities)
    deviation, entropy = float(np.std(whole.logits)), whole.entropy()
    moments = Moments(len(whole), deviation, entropy)
    return Shortlist(whole.ids[:kept], whole.logits[:kept], ends=False, logsumexp=0.0, moments=moments)


TAIL = (0.4, 0.2, 0.1, *[0.01] * 30)


@pytest.mark.parametrize(
    "narrow",
    [
        lambda x: filters.typical(x, 0.3),
        lambda x: filters.typical(x, 0.1),
        lambda x: filters.top_n_sigma(x, 1.5),
        lambda x: filters.top_n_sigma(x, 3.0),
    ],
)
def test_a_list_with_the_moments_of_its_row_is_cut_as_the_row(
    narrow: Callable[[Shortlist], Shortlist | None],
) -> None:
    assert kept(narrow(beginning(*TAIL, kept=6))) == kept(narrow(listed(*TAIL)))


def test_typical_tokens_may_lie_beyond_the_list() -> None:
    """Tokens that are nearer to the entropy than the last listed one may be before it or beyond the list."""
    assert filters.typical(beginning(*TAIL, kept=6), 0.95) is None
    assert filters.typical(beginning(*[0.01] * 100, kept=6), 0.5) is None
    # The best token alone reaches the share, but tokens beyond the list are nearer to the entropy.
    assert filters.typical(beginning(0.4, *[0.006] * 100, kept=3), 0.3) is None
    early = beginning(0.5, *[0.005] * 100, kept=1)  # its only token has less surprise than the average
    assert filters.typical(early, 0.1) is None


def test_a_cut_at_standard_deviations_may_lie_beyond_the_list() -> None:
    assert filters.top_n_sigma(beginning(*TAIL, kept=6), 5.0) is None


def test_a_dynamic_temperature_is_known_from_the_moments_of_the_row() -> None:
    dynamic = DynamicTemperature(0.75)
    found = filters.dynamic_temperature(beginning(*TAIL, kept=6), 1.0, dynamic)
    whole = filters.dynamic_temperature(listed(*TAIL), 1.0, dynamic)
    assert found is not None
    assert whole is not None
    assert found.logits == pytest.approx(whole.logits[:6])
    assert not found.ends
    assert found.probabilities() is None


def test_xtc_excludes_from_a_list_that_goes_on() -> None:
    found = filters.xtc(listed(0.4, 0.3, 0.1, ends=False), Xtc(0.5, 0.2), 0.4)
    assert found is not None
    assert not found.ends
    assert found.probabilities() == pytest.approx([0.3 / 0.6, 0.1 / 0.6])


def test_temperature_follows_the_entropy_between_its_ends() -> None:
    dynamic = DynamicTemperature(0.75)
    flat = filters.dynamic_temperature(listed(0.25, 0.25, 0.25, 0.25), 1.0, dynamic)
    assert flat is not None
    assert flat.logits == pytest.approx(np.full(4, math.log(0.25) / 1.75))
    certain = filters.dynamic_temperature(listed(1.0 - 1e-12, 1e-12), 1.0, dynamic)
    assert certain is not None
    assert certain.logits[1] == pytest.approx(math.log(1e-12) / 0.25, rel=1e-6)
    bent = filters.dynamic_temperature(listed(0.9, 0.1), 1.0, DynamicTemperature(0.75, 2.0))
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)) / math.log(2.0)
    assert bent is not None
    assert bent.logits[1] == pytest.approx(math.log(0.1) / (0.25 + 1.5 * entropy**2))


def test_a_dynamic_temperature_of_zero_leaves_the_best() -> None:
    certain = listed(1.0 - 1e-15, 1e-15)
    assert kept(filters.dynamic_temperature(certain, 0.5, DynamicTemperature(0.5, 4.0))) == [0]
    assert kept(filters.dynamic_temperature(listed(1.0), 0.5, DynamicTemperature(0.5))) == [0]
