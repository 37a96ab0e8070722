"""Notices when other programs fill the memory that a model uses, and when a driver spills to main memory."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

import msgspec

log = logging.getLogger(__name__)

WARN_SHARE = 0.88
"""Share of a memory in use that is logged. A model that gives way leaves this much in use."""
FULL_SHARE = 0.95
"""Share of a memory in use at which a model gives way."""
GROWTH = 0.05
"""Share of a memory that others must have taken since the model was placed: one that fills a memory by itself
has been planned so."""
EVERY_S = 2.0
"""Seconds between two looks: asking a driver takes time."""


class MemoryState(msgspec.Struct, frozen=True):
    """The bytes of a memory."""

    free_bytes: int
    total_bytes: int
    spilled_bytes: int = 0
    """What the driver keeps in main memory instead."""

    @property
    def share(self) -> float:
        """Share in use."""
        return 1.0 - self.free_bytes / self.total_bytes


class MemoryWatch:
    """Watches the memories of a model's devices. ``look`` returns their states by `DeviceInfo.memory_id`."""

    def __init__(
        self, look: Callable[[], Mapping[str, MemoryState]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._clock = clock
        self._at_start: Mapping[str, MemoryState] = {}
        self._warned: set[str] = set()
        self.spilled_bytes: Mapping[str, int] = {}
        """What drivers keep in main memory, by `DeviceInfo.memory_id`, when it was last looked."""
        self._next_s = 0.0
        self.begin()

    def begin(self) -> None:
        """Take the present states as those of a model that was just placed."""
        self._at_start = self._looked()
        self._next_s = self._clock() + EVERY_S

    def full_memory(self) -> str | None:
        """Return a memory that others have filled since the model was placed; None: there is none.

        Returns None without a look if the last one was less than `EVERY_S` ago.
        """
        if self._clock() < self._next_s:
            return None
        self._next_s = self._clock() + EVERY_S
        for memory_id, state in self._looked().items():
            start = self._at_start.get(memory_id, state)
            if start.free_bytes - state.free_bytes < GROWTH * state.total_bytes:
                self._warned.discard(memory_id)
            elif state.share >= FULL_SHARE:
                return memory_id
            elif state.share >= WARN_SHARE and memory_id not in self._warned:
                self._warned.add(memory_id)
                log.warning(
                    "memory_nearly_full",
                    extra={"memory": memory_id, "used": f"{state.share:.0%}", "free_bytes": state.free_bytes},
                )
        return None

    def _looked(self) -> Mapping[str, MemoryState]:
        """Look at the memories, and log those that began to spill."""
        states = self._look()
        spilled = {name: state.spilled_bytes for name, state in states.items() if state.spilled_bytes}
        for memory_id in spilled.keys() - self.spilled_bytes.keys():
            log.warning("memory_spilled", extra={"memory": memory_id, "spilled_bytes": spilled[memory_id]})
        self.spilled_bytes = spilled
        return states
