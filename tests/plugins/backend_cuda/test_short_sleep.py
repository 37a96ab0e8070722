"""Threads that sleep have exact timers."""

from __future__ import annotations

import ctypes
import threading

from llmd_backend_cuda.short_sleep import sleep

SET_TIMER_SLACK, GET_TIMER_SLACK = 29, 30


def test_each_thread_that_sleeps_has_exact_timers() -> None:
    seen: list[int] = []

    def run() -> None:
        prctl = ctypes.CDLL(None).prctl
        prctl(SET_TIMER_SLACK, ctypes.c_ulong(50_000), 0, 0, 0)
        sleep(1e-6)
        seen.append(int(prctl(GET_TIMER_SLACK, 0, 0, 0, 0)))

    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert seen == [1000, 1000]
