"""How many sequences may wait for one model, and when those that find no room should come back."""

from __future__ import annotations

import math
from collections import Counter, deque

from msgspec import Struct

from llmd.server.errors import BusyError, RateLimitError

WINDOW_S = 60.0
MAX_SAMPLES = 1024
RETRY_S = (1, 60)


class QueueLimits(Struct, frozen=True):
    """``sequences`` may wait beside those that run, ``per_key`` of one API key run or wait, and all of them have at
    most ``tokens`` prompt tokens. None is no limit.
    """

    sequences: int = 512
    per_key: int | None = None
    tokens: int | None = None


DEFAULT_LIMITS = QueueLimits()


class QueueEntry(Struct, eq=False):
    """Sequences of one request that were let in, and their prompt tokens."""

    key: str
    sequences: int
    tokens: int


class AdmissionLimits:
    """Counts the sequences of one model that run or wait. Times are seconds of a clock that only goes forward.

    Who is refused is told when there will be room: at the rate at which entries became free in the last minute, and
    behind all those who were told so before, so that they do not come back all at once.
    """

    def __init__(self, model: str, slots: int, limits: QueueLimits, now: float) -> None:
        self._model = model
        self._slots = slots
        self._limits = limits
        self._sequences = 0
        self._tokens = 0
        self._of_key: Counter[str] = Counter()
        self._since = now
        self._freed: deque[float] = deque(maxlen=MAX_SAMPLES)
        self._promised = now

    @property
    def waiting(self) -> int:
        """Sequences beyond those that can run at once."""
        return max(0, self._sequences - self._slots)

    def admit(self, key: str, sequences: int, tokens: int, now: float) -> QueueEntry:
        """Let the sequences of a request in; `leave` gives the entry back.

        A request that is larger than a limit is taken where it need not wait, or it could never run.

        Raises:
            BusyError: there is no room.
            RateLimitError: there is none for this key.
        """
        if key and self._limits.per_key is not None:
            self._check_key(key, sequences, self._limits.per_key, now)
        room = self._slots + self._limits.sequences
        if self._sequences >= self._slots and self._sequences + sequences > room:
            raise self._refusal(
                BusyError,
                f"{self._limits.sequences} sequences wait for {self._model} already",
                "queue_full",
                self._sequences + sequences - room,
                now,
            )
        most = self._limits.tokens
        if self._sequences and most is not None and self._tokens + tokens > most:
            raise self._refusal(
                BusyError,
                f"requests for {self._model} have {self._tokens} prompt tokens, at most {most} may wait",
                "queue_full",
                sequences,
                now,
            )
        self._sequences += sequences
        self._tokens += tokens
        self._of_key[key] += sequences
        return QueueEntry(key, sequences, tokens)

    def release(self, entry: QueueEntry, now: float, *, served: bool = True) -> None:
        """Give a entry back. ``served``: its sequences ended, and were not merely counted for a while."""
        self._sequences -= entry.sequences
        self._tokens -= entry.tokens
        self._of_key[entry.key] -= entry.sequences
        if not self._of_key[entry.key]:
            del self._of_key[entry.key]
        if served:
            self._freed.extend([now] * entry.sequences)

    def rate(self, now: float) -> float:
        """Places that became free in a second, lately. Where none did, as if the next did now."""
        while self._freed and self._freed[0] < now - WINDOW_S:
            self._freed.popleft()
        is_cut = len(self._freed) == MAX_SAMPLES
        since = self._freed[0] if is_cut else max(self._since, now - WINDOW_S)
        return max(1, len(self._freed)) / max(now - since, 1e-3)

    def _check_key(self, key: str, sequences: int, most: int, now: float) -> None:
        held = self._of_key[key]
        if held and held + sequences > most:
            message = f"the key {key} has {held} sequences at {self._model}, at most {most} are allowed"
            raise self._refusal(RateLimitError, message, "key_limit", held + sequences - most, now)

    def _refusal(self, kind: type[BusyError], message: str, code: str, wanted: int, now: float) -> BusyError:
        shortest, longest = RETRY_S
        self._promised = max(self._promised, now) + wanted / self.rate(now)
        self._promised = min(self._promised, now + longest)
        return kind(
            message,
            code=code,
            hint="send the request again after the time in retry-after",
            retry_after_s=max(shortest, math.ceil(self._promised - now)),
        )
