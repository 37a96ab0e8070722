"""The end of a step, which may follow a step of another card."""

from __future__ import annotations

import contextlib
import time

import msgspec

from llmd.api.errors import LlmdError
from llmd_backend_cuda.runtime import Event, Runtime

LONGEST_STEP_S = 600.0
"""A device that takes longer for a step is lost."""


class StepEnd(msgspec.Struct, frozen=True):
    """A point of a card's stream."""

    runtime: Runtime
    """The card."""
    event: Event
    before: StepEnd | None = None
    """The step, often of another card, whose hidden states this one takes: its stream waits for it."""

    def reach(self, timeout_s: float = LONGEST_STEP_S) -> None:
        """Wait for it.

        Raises:
            DeviceLostError: a card is gone, or did not get there in time; it names the first such card. One
                that waits for a lost card is not lost.
        """
        began_s = time.perf_counter()
        if self.before is not None:
            self.before.reach(timeout_s)
        left_s = max(0.0, timeout_s - (time.perf_counter() - began_s))
        if not self.event.wait(left_s):
            raise self.runtime.lost(f"the step did not finish within {timeout_s:g} s")

    def check(self) -> None:
        """Ask the cards whether they are gone, without waiting.

        Raises:
            DeviceLostError: one is.
        """
        if self.before is not None:
            self.before.check()
        self.event.wait(0.0)

    def settle(self, timeout_s: float) -> None:
        """Wait until the card does nothing for the step any more, before memory is freed.

        A card that does not get there, because it waits for a lost one, is lost, too: freeing would wait for
        ever.
        """
        with contextlib.suppress(LlmdError):
            if not self.event.wait(timeout_s):
                self.runtime.lost("it waits for a card that is lost")
