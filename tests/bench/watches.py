"""Fake occupation of a machine: in a test the real one would depend on other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Watch:
    """A watch with a fixed share of others and fixed available CPU seconds."""

    def __init__(self, share: float = 0.0, available_s: float = 10.0) -> None:
        self._share, self._available_s = share, available_s

    def available_s(self) -> float:
        return self._available_s

    def of_others(self) -> float:
        return self._share


def scripted(*shares: float) -> Callable[[], Watch]:
    """Return a factory of watches with these shares, one per round."""
    left: Iterator[float] = iter(shares)
    return lambda: Watch(next(left))
