from __future__ import annotations

from llmd.api.messages import SamplingParams
from llmd.benchmark.engine_loop import measure_loop


def test_the_device_stands_still_while_a_loop_draws() -> None:
    cost = measure_loop(3, SamplingParams(0, 0.8), 1e-6, 5)  # shorter than any loop
    assert cost.idle_share > 1
    assert cost.loop_s > 0


def test_tokens_come_no_faster_than_the_device_makes_them() -> None:
    cost = measure_loop(2, SamplingParams(0, 0.0), 2e-3, 20)
    assert 0 < cost.tokens_per_s <= 2 / 2e-3 * 1.1
    assert cost.idle_share >= 0
