"""Sleeps of a few microseconds.

Linux lets a thread sleep up to 50 µs longer than it asked for, unless it says otherwise (``prctl(2)``,
``PR_SET_TIMERSLACK``).
"""

from __future__ import annotations

import ctypes
import threading
import time

_SET_TIMER_SLACK = 29
_SLACK_NS = 1000


_exact = threading.local()


def sleep(seconds: float) -> None:
    """Let the calling thread sleep. From then on, its timers are exact, as are those of its new threads."""
    if not hasattr(_exact, "is_set"):
        ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(_SLACK_NS), 0, 0, 0)
        _exact.is_set = True
    time.sleep(seconds)
