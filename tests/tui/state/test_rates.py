from __future__ import annotations

from llmd_tui.state.rates import Counters, rates


def test_rates_are_differences_over_the_time_between() -> None:
    before = {"a": Counters(steps=10, prompt_tokens=100, cached_tokens=0, output_tokens=50, decode_s=1.0)}
    now = {"a": Counters(steps=20, prompt_tokens=140, cached_tokens=60, output_tokens=90, decode_s=1.8)}
    figures = rates(before, now, 2.0)
    assert figures["decode_tps"] == 20.0
    assert figures["prefill_tps"] == 20.0
    assert figures["batch"] == 8.0
    assert figures["cache_hit"] == 0.6
    assert abs(figures["busy"] - 0.4) < 1e-9
    assert abs(figures["step_ms"] - 80.0) < 1e-9


def test_an_engine_that_began_again_counts_from_zero() -> None:
    before = {"a": Counters(steps=1000, output_tokens=5000)}
    now = {"a": Counters(steps=4, output_tokens=3), "new": Counters(steps=1, output_tokens=1)}
    assert rates(before, now, 1.0)["decode_tps"] == 4.0


def test_an_idle_engine_has_no_batch() -> None:
    same = {"a": Counters(steps=5)}
    assert rates(same, same, 1.0) == {"decode_tps": 0.0, "prefill_tps": 0.0, "busy": 0.0}
