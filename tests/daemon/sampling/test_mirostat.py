"""Mirostat against its formulas, and against its purpose: the target surprise."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.messages import SamplingParams
from llmd.api.samplers import Mirostat
from llmd.sampling import mirostat
from llmd.sampling.sampler import Sampler
from llmd.sampling.shortlist import Shortlist, of_row
from tests.daemon.sampling.closed_form import make_row, step_result


def zipf(exponent: float, count: int = 500) -> np.ndarray:
    """Return logits of tokens with probabilities proportional to rank ** -exponent."""
    return (-exponent * np.log(np.arange(1, count + 1))).astype(np.float32)


def test_version_2_keeps_tokens_up_to_the_limit_and_always_the_best() -> None:
    listed = of_row(np.log(np.array([0.5, 0.25, 0.125, 0.125], np.float32)))
    kept = {limit: mirostat.narrow(listed, Mirostat(2), limit, 4) for limit in (-5.0, 1.5, 2.5, 1e9)}
    assert {limit: len(found or ()) for limit, found in kept.items()} == {-5.0: 1, 1.5: 1, 2.5: 2, 1e9: 4}


@pytest.mark.parametrize("exponent", [0.8, 1.2, 3.0])
def test_version_1_keeps_as_many_as_zipfs_law_says(exponent: float) -> None:
    limit, vocab = 4.0, 500
    excess = exponent - 1.0
    expected = (excess * 2.0**limit / (1.0 - vocab**-excess)) ** (1.0 / exponent)
    found = mirostat.narrow(of_row(zipf(exponent)), Mirostat(1), limit, vocab)
    assert found is not None
    assert len(found) == pytest.approx(expected, abs=1.0)


def test_version_1_has_a_limit_where_the_formula_divides_by_zero() -> None:
    for logits in (zipf(1.0), np.zeros(500, np.float32)):
        for limit in (-1e6, 0.0, 8.0, 1e6):
            found = mirostat.narrow(of_row(logits), Mirostat(1), limit, 500)
            assert found is not None
            assert 1 <= len(found) <= 500
    assert mirostat.narrow(of_row(np.zeros(1, np.float32)), Mirostat(1), 3.0, 1) is not None


@pytest.mark.parametrize("version", [1, 2])
def test_what_depends_on_tokens_beyond_the_list_is_not_decided(version: int) -> None:
    listed = of_row(zipf(1.1))
    beginning = Shortlist(listed.ids[:99], listed.logits[:99], ends=False, logsumexp=None)
    assert mirostat.narrow(beginning, Mirostat(version), 1.0, 500) is None  # type: ignore[arg-type]


def test_the_state_moves_against_the_error_and_travels() -> None:
    params = Mirostat(2, tau=3.0, eta=0.5)
    assert mirostat.unpack(params, b"") == mirostat.begin(params) == 6.0
    assert mirostat.advance(params, 6.0, 2.0**-5) == 6.0 - 0.5 * 2.0
    state = mirostat.pack(5.125)
    assert (len(state), mirostat.unpack(params, state)) == (8, 5.125)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tau", [2.0, 4.0])
def test_tokens_are_as_surprising_as_was_asked_for(version: int, tau: float) -> None:
    params = SamplingParams(seed=1, mirostat=Mirostat(version, tau=tau, eta=0.1))  # type: ignore[arg-type]
    rows = [make_row(seed, spread=1.0) for seed in range(20)]
    sampler, limits = Sampler(len(rows[0])), []
    sampler.add(1, params, [1])
    for place in range(1500):
        row = rows[place % len(rows)]
        draws = sampler.draw(sampler.prepare([1], [place]), step_result([row], [1.0]), lambda _, row=row: row)  # type: ignore[misc]
        sampler.accept(1, 0, draws)
        limits.append(mirostat.unpack(Mirostat(2), sampler.state(1)))
    # The limit moves by eta times the error of a token's surprise: if it stays constant, the mean error is
    # small.
    settled = limits[300:]
    assert abs(settled[-1] - settled[0]) / len(settled) / 0.1 < 0.05
    assert len(set(settled)) > 1000
