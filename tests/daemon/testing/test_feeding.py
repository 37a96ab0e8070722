"""A device that feeds a step with a wrong token is found."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.candidates import OutputRows
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.conformance import all_cases, check_device
from llmd.testing.feeding import NUM_STEPS, decode_twice

CASE = next(case for case in all_cases() if case.name == "program/draws")


def problems() -> dict[str, str]:
    return {result.name: result.problem for result in check_device(ReferenceDevice(), (CASE,))}


def test_the_reference_is_fed_with_the_tokens_that_it_draws() -> None:
    fed, passed_on = decode_twice(ReferenceDevice(), CASE)
    assert fed.shape == (1 + NUM_STEPS, len(CASE.tokens), CASE.plan.vocab_size)
    assert np.array_equal(fed, passed_on)
    assert len(np.unique(fed.round(3), axis=0)) == 1 + NUM_STEPS
    assert set(problems().values()) == {""}


def test_a_device_that_feeds_the_best_candidate_for_a_drawn_token_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OutputRows, "token", lambda rows, output: int(rows.edited[output].argmax()))
    found = problems()
    assert "NMSE" in found.pop("program/draws fed by the device")
    assert set(found.values()) == {""}


def test_a_device_that_feeds_from_another_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = OutputRows.token
    monkeypatch.setattr(OutputRows, "token", lambda rows, output: right(rows, (output + 1) % len(rows.raw)))
    assert "NMSE" in problems()["program/draws fed by the device"]
