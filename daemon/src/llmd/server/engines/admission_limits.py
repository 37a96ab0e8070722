"""Limits on the sequences of one model that run or wait, and Retry-After estimates for refused requests."""

from __future__ import annotations

import math
from collections import Counter, deque

from msgspec import Struct

from llmd.server.errors import BusyError, RateLimitError
from llmd.server.request_record import QueueEntry

WINDOW_S = 60.0
MAX_SAMPLES = 1024
RETRY_S = (1, 60)


class QueueLimits(Struct, frozen=True):
    """Limits of one model's queue. None: no limit."""

    sequences: int = 512
    """Sequences that may wait in addition to those that run."""
    per_key: int | None = None
    """Sequences that one API key may have, running and waiting."""
    tokens: int | None = None
    """Prompt tokens of all sequences, running and waiting."""


DEFAULT_LIMITS = QueueLimits()


class AdmissionLimits:
    """Counts the sequences of one model that run or wait. Times are seconds of a monotonic clock.

    A refused request gets a Retry-After estimate from the rate at which sequences ended in the last
    minute, as far as the model was not idle. Each estimate comes after those of earlier refused requests,
    so that they do not all retry at once.
    """

    def __init__(self, model: str, slots: int, limits: QueueLimits, now: float) -> None:
        self._model = model
        self._slots = slots
        self.limits = limits
        self._sequences = 0
        self._tokens = 0
        self._of_key: Counter[str] = Counter()
        self._since = now
        self._freed: deque[float] = deque(maxlen=MAX_SAMPLES)
        self._promised = now
        self._idle_since = now
        self._idle: deque[tuple[float, float]] = deque(maxlen=MAX_SAMPLES)
        """Begin and end of times without sequences."""

    @property
    def waiting(self) -> int:
        """Sequences beyond those that can run at once."""
        return max(0, self._sequences - self._slots)

    def admit(self, key: str, sequences: int, tokens: int, now: float) -> QueueEntry:
        """Admit the sequences of a request. Pass the entry to `release` when they end.

        A request that exceeds a limit by itself is admitted if it need not wait; otherwise it could never
        run.

        Raises:
            BusyError: the queue is full.
            RateLimitError: this API key has reached its limit.
        """
        if key and self.limits.per_key is not None:
            self._check_key(key, sequences, self.limits.per_key, now)
        room = self._slots + self.limits.sequences
        if self._sequences >= self._slots and self._sequences + sequences > room:
            raise self._refusal(
                BusyError,
                f"the queue of {self._model} is full: {self.limits.sequences} sequences are waiting",
                "queue_full",
                self._sequences + sequences - room,
                now,
            )
        most = self.limits.tokens
        if self._sequences and most is not None and self._tokens + tokens > most:
            raise self._refusal(
                BusyError,
                f"requests for {self._model} already hold {self._tokens} prompt tokens; the limit is {most}",
                "queue_full",
                sequences,
                now,
            )
        if not self._sequences:
            self._idle.append((self._idle_since, now))
        self._sequences += sequences
        self._tokens += tokens
        self._of_key[key] += sequences
        return QueueEntry(key, sequences, tokens)

    def release(self, entry: QueueEntry, now: float, *, served: bool = True) -> None:
        """Remove an entry. ``served``: its sequences ran and ended, and count in `rate`."""
        self._sequences -= entry.sequences
        if not self._sequences:
            self._idle_since = now
        self._tokens -= entry.tokens
        self._of_key[entry.key] -= entry.sequences
        if not self._of_key[entry.key]:
            del self._of_key[entry.key]
        if served:
            self._freed.extend([now] * entry.sequences)

    def rate(self, now: float) -> float:
        """Sequences that ended per second of the last minute; if none did, one is assumed.

        Idle time does not count: a first burst would seem to run as slowly as nothing ended before it.
        """
        while self._freed and self._freed[0] < now - WINDOW_S:
            self._freed.popleft()
        is_cut = len(self._freed) == MAX_SAMPLES
        since = self._freed[0] if is_cut else max(self._since, now - WINDOW_S)
        idle_s = sum(max(0.0, end - max(begin, since)) for begin, end in self._idle)
        return max(1, len(self._freed)) / max(now - since - idle_s, 1e-3)

    def _check_key(self, key: str, sequences: int, most: int, now: float) -> None:
        held = self._of_key[key]
        if held and held + sequences > most:
            message = f"API key {key} already has {held} sequences at {self._model}; the limit is {most}"
            raise self._refusal(RateLimitError, message, "key_limit", held + sequences - most, now)

    def _refusal(self, kind: type[BusyError], message: str, code: str, wanted: int, now: float) -> BusyError:
        shortest, longest = RETRY_S
        self._promised = max(self._promised, now) + wanted / self.rate(now)
        self._promised = min(self._promised, now + longest)
        return kind(
            message,
            code=code,
            hint="retry after the number of seconds in the Retry-After header",
            retry_after_s=max(shortest, math.ceil(self._promised - now)),
        )
