from __future__ import annotations

from llmd.server.engines.hang_detector import HangDetector


def test_an_engine_that_neither_sends_nor_computes_hangs() -> None:
    detector = HangDetector(now=100.0)
    assert detector.silent_s(101.0, used_s=5.0) == 1.0
    assert detector.silent_s(130.0, used_s=5.0) == 30.0
    detector.heard(131.0)
    assert detector.silent_s(132.0, used_s=5.0) == 1.0


def test_a_long_step_that_computes_is_no_hang() -> None:
    detector = HangDetector(now=0.0)
    for second in range(1, 1000):
        assert detector.silent_s(float(second), used_s=second * 0.5) <= 1.0
    assert detector.silent_s(1060.0, used_s=499.6) > 60.0  # a tick or two is no computation


def test_where_the_system_does_not_say_nothing_hangs() -> None:
    detector = HangDetector(now=0.0)
    assert detector.silent_s(1e6, used_s=None) == 0.0
