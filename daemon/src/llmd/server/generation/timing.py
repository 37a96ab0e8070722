"""When a request's tokens arrived, for dialects that report durations."""

from __future__ import annotations

import time

from msgspec import Struct


class Timing(Struct):
    """Monotonic times in nanoseconds: when the sequences were submitted,
    and when the first and latest token arrived.

    Each is 0 until it happens; the durations of a request without tokens are 0.
    """

    submitted: int = 0
    first_token: int = 0
    last_token: int = 0

    def submit(self) -> None:
        """Record that the sequences are submitted now."""
        self.submitted = time.monotonic_ns()

    def token(self) -> None:
        """Record that a token arrived now."""
        self.last_token = time.monotonic_ns()
        self.first_token = self.first_token or self.last_token

    @property
    def prefill_ns(self) -> int:
        """Time from submission to the first token: waiting and computing the prompt."""
        return max(self.first_token - self.submitted, 0)

    @property
    def decode_ns(self) -> int:
        """Time from the first token to the latest one."""
        return self.last_token - self.first_token
