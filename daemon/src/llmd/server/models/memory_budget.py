"""The budget of one memory for the models of one daemon."""

from __future__ import annotations

from collections.abc import Callable


class MemoryBudget:
    """What all models may take together of one memory.

    Without a user limit, the budget is the memory ``available`` at the start, and never more than is
    available later, because other programs need memory too.
    """

    def __init__(self, limit_bytes: int | None, available: Callable[[], int]) -> None:
        self.limit_bytes = limit_bytes
        self._available = available
        self._capacity = available() if limit_bytes is None else limit_bytes

    def free_bytes(self, held: int, promised: int) -> int:
        """Return what is left when models hold ``held`` bytes,
        ``promised`` of which are not allocated yet.
        """
        left = self._capacity - held
        return left if self.limit_bytes is not None else min(left, self._available() - promised)
