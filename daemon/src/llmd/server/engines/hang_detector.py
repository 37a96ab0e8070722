"""Decides whether an engine hangs: whether it makes no progress. No I/O, no clock.

Progress is a result, or a report which says that a step has ended or that there is nothing to do. Other
answers are none: a loop that runs no steps still answers.

Silence alone proves nothing: one step of a large model on few processors may take minutes. An engine hangs if
it makes no progress and uses no processor (a stopped process, a driver that does not return), or has computed
for much longer than its steps take (an endless loop). Processor time is compared, because a step that reads
weights from a slow disk, or that runs on a busy machine, takes long but computes little.
"""

from __future__ import annotations

from msgspec import Struct

from llmd.api.messages import FromEngine, Loading
from llmd.api.reports import Blocks, Report
from llmd.api.results import Embedded, Output
from llmd.process.limits import TimeLimit, TimeSpent

BUSY_SHARE = 0.002
"""A process that uses less than this share of one processor computes nothing. On a busy machine, one that
computes may get little more."""

STEP_FACTOR = 20
"""How much longer than its longest step so far an engine may compute without progress."""

LONGEST_S = 1800.0
"""How long an engine may make no progress while its steps are not measured: while it loads, compiles, or
computes its first step. Later, the same without computing all the time, and where the system does not say
how much it computes."""


class HangLimits(Struct, frozen=True):
    """When an engine is asked for a sign of life, and when it is killed for making no progress."""

    probe_s: float
    """Seconds between two looks."""
    kill_s: float | None = None
    """Seconds without progress before which it is not killed; None: it is never killed."""


NO_HANG_LIMITS = HangLimits(probe_s=0.0)
"""Never look."""

NONE_SPENT = TimeSpent(0.0, 0.0)


class HangDetector:
    """Follows one engine. It counts looks instead of reading a clock: time for which the daemon itself was
    stopped does not count.
    """

    def __init__(self, limits: HangLimits) -> None:
        self._limits = limits
        self._used_s: float | None = None
        self._silence = self._stall = NONE_SPENT
        self._steps = 0
        self._step_s: float | None = None

    @property
    def silent_s(self) -> float:
        """For how long it has neither sent nor computed anything."""
        return self._silence.wall_s

    @property
    def stalled_s(self) -> float:
        """For how long it has made no progress."""
        return self._stall.wall_s

    def heard(self, message: FromEngine) -> None:
        """Note that the engine has sent something."""
        self._silence = NONE_SPENT
        if self._is_progress(message):
            self._stall = NONE_SPENT
        if isinstance(message, Report):
            self._steps, self._step_s = message.steps, message.step_s
        elif isinstance(message, Output | Embedded):
            if message.step_s is not None:
                self._step_s = message.step_s
        elif isinstance(message, Loading):  # also after a device was lost: the next steps are others
            self._step_s = None

    def look(self, used_s: float | None) -> bool:
        """Note that ``probe_s`` seconds have passed; return whether the engine hangs.

        ``used_s`` is the processor time that it has used so far; None if the system does not say.
        """
        computed_s = 0.0 if used_s is None or self._used_s is None else used_s - self._used_s
        self._used_s = used_s
        more = TimeSpent(computed_s, self._limits.probe_s)
        self._stall = _sum(self._stall, more)
        self._silence = _sum(self._silence, more)
        if used_s is None or self._silence.processor_s >= BUSY_SHARE * self._silence.wall_s:
            self._silence = NONE_SPENT
        kill_s = self._limits.kill_s
        if kill_s is None:
            return False
        return self.silent_s >= kill_s or self._limit(kill_s).is_reached(self._stall)

    def _limit(self, kill_s: float) -> TimeLimit:
        """Return how long the engine may make no progress while it computes."""
        step_s = LONGEST_S if self._step_s is None else STEP_FACTOR * self._step_s
        return TimeLimit(max(kill_s, step_s), max(kill_s, step_s, LONGEST_S))

    def _is_progress(self, message: FromEngine) -> bool:
        if isinstance(message, Report):
            return message.steps != self._steps or not (message.running or message.waiting)
        return not isinstance(message, Blocks)


def _sum(first: TimeSpent, second: TimeSpent) -> TimeSpent:
    return TimeSpent(first.processor_s + second.processor_s, first.wall_s + second.wall_s)
