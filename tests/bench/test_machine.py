"""The page says what was measured on, and how much of it others had."""

from __future__ import annotations

import os

from bench.machine import Occupation, describe


def test_the_machine_is_described() -> None:
    text = describe()
    assert f"{len(os.sched_getaffinity(0))} CPUs" in text
    assert "family" in text


def test_own_work_is_not_that_of_others() -> None:
    occupation = Occupation()
    others = []
    for _ in range(3):
        sum(range(3_000_000))
        others.append(occupation.of_others())
    assert all(0 <= share <= 1.05 for share in others)
