"""Decides whether an engine hangs: it sends nothing, and it uses no processor time. No I/O, no clock.

Silence alone proves nothing: one step of a large model on few processors may take minutes.
"""

from __future__ import annotations

from msgspec import Struct

BUSY_SHARE = 0.002
"""A process that uses less than this share of one processor computes nothing. On a busy machine, one that
computes may get little more."""


class HangLimits(Struct, frozen=True):
    """When an engine is asked for a sign of life, and when it is killed for giving none."""

    probe_s: float
    """Seconds between two looks."""
    kill_s: float | None = None
    """Seconds without a sign of life; None: it is never killed."""


NO_HANG_LIMITS = HangLimits(probe_s=0.0)
"""Never look."""


class HangDetector:
    """Measures for how long one engine has shown no sign of life. Times are seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._alive_at = now
        self._used_s: float | None = None

    def heard(self, now: float) -> None:
        """Note that the engine has sent something."""
        self._alive_at, self._used_s = now, None

    def silent_s(self, now: float, used_s: float | None) -> float:
        """Return for how long it has neither sent nor computed anything.

        ``used_s`` is the processor time that it has used so far; None if the system does not say, and
        nothing can be decided.
        """
        if used_s is None:
            self.heard(now)
        elif self._used_s is None:
            self._used_s = used_s
        elif used_s - self._used_s >= BUSY_SHARE * (now - self._alive_at):
            self._alive_at, self._used_s = now, used_s
        return now - self._alive_at
