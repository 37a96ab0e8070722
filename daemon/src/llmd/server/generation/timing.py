"""When a request's tokens came, for dialects that tell durations."""

from __future__ import annotations

import time

from msgspec import Struct


class Timing(Struct):
    """Nanoseconds of the monotonic clock: when the engine got the sequences, and their first and latest token.

    All are 0 until they happen; a request without tokens has no durations.
    """

    submitted: int = 0
    first_token: int = 0
    last_token: int = 0

    def submit(self) -> None:
        """The engine gets the sequences now."""
        self.submitted = time.monotonic_ns()

    def token(self) -> None:
        """A token has come now."""
        self.last_token = time.monotonic_ns()
        self.first_token = self.first_token or self.last_token

    @property
    def prefill_ns(self) -> int:
        """From submission to the first token: waiting, and computing the prompt."""
        return max(self.first_token - self.submitted, 0)

    @property
    def decode_ns(self) -> int:
        """From the first token to the latest one."""
        return self.last_token - self.first_token
