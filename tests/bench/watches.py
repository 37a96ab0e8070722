"""Stand in for the occupation of a machine, which in a test depends on who else works."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Watch:
    """Says that others had a share of so many seconds of processor time."""

    def __init__(self, share: float = 0.0, available_s: float = 10.0) -> None:
        self._share, self._available_s = share, available_s

    def available_s(self) -> float:
        return self._available_s

    def of_others(self) -> float:
        return self._share


def scripted(*shares: float) -> Callable[[], Watch]:
    """Watches of one round after the other."""
    left: Iterator[float] = iter(shares)
    return lambda: Watch(next(left))
