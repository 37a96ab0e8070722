"""How much memory the models of one daemon may take."""

from __future__ import annotations

from collections.abc import Callable


class MemoryBudget:
    """The bytes that all models may take together.

    Without a limit of the user's it is what ``available`` says at first, and never more than it says later: other
    programs of this machine need memory too.
    """

    def __init__(self, limit_bytes: int | None, available: Callable[[], int]) -> None:
        self.limit_bytes = limit_bytes
        self._available = available
        self._capacity = available() if limit_bytes is None else limit_bytes

    def free_bytes(self, held: int, promised: int) -> int:
        """What is left beside ``held`` bytes of models, ``promised`` bytes of which are not yet taken."""
        left = self._capacity - held
        return left if self.limit_bytes is not None else min(left, self._available() - promised)
