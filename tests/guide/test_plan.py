"""How the rate of learning goes, by steps or by the clock."""

from __future__ import annotations

import pytest

from guide.plan import CONTINUED, ON_GPU, ON_PROCESSOR, Plan, plan_for

PLAN = Plan(steps=100, warmup=10, decay=0.4, rate=1.0)


def test_the_rate_rises_stays_and_falls_to_zero_at_the_end() -> None:
    rates = [PLAN.rate_at(step, PLAN.done(step, 0.0)) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
    assert rates[10:61] == [1.0] * 51
    assert rates[60:] == sorted(rates[60:], reverse=True)
    assert rates[70] == pytest.approx(0.5)
    assert rates[100] == 0.0


def test_minutes_replace_steps() -> None:
    timed = Plan(steps=100, minutes=2)
    assert [timed.done(1000, seconds) for seconds in (0, 30, 120, 121)] == [0, 0.25, 1, 1]


def test_a_gpu_has_a_plan_of_its_own_and_a_further_stage_too() -> None:
    assert plan_for("cpu", continued=False) is ON_PROCESSOR
    assert plan_for("cuda", continued=False) is ON_GPU
    assert plan_for("cpu", continued=True) is CONTINUED
