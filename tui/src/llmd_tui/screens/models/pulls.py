"""The pulls that this interface began, and those that others began."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from llmd_tui.daemon.access import Daemon
from llmd_tui.screens.models.pull_progress import PullProgress


class Pulls:
    """The running pulls by name, oldest first."""

    def __init__(self, daemon: Daemon, clock: Callable[[], float]) -> None:
        self._daemon = daemon
        self._clock = clock
        self._own: dict[str, PullProgress] = {}
        self._others: dict[str, PullProgress] = {}

    @property
    def own(self) -> Sequence[str]:
        """Names of the pulls that this interface follows: they end with it."""
        return tuple(self._own)

    @property
    def shown(self) -> Sequence[PullProgress]:
        return (*self._own.values(), *self._others.values())

    async def follow(self, name: str) -> AsyncGenerator[None, None]:
        """Pull a model; yield after each step. Closing the generator leaves the pull.

        Raises:
            LlmdError: the pull failed.
        """
        pull = self._own[name] = PullProgress(name)
        self._others.pop(name, None)
        try:
            async with aclosing(self._daemon.lines("/llmd/pull", {"model": name})) as steps:
                async for step in steps:
                    pull.add(step, self._clock())
                    yield
        finally:
            del self._own[name]

    def see_others(self, running: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Take in the pulls of ``GET /llmd/models``."""
        others = {name: steps for name, steps in running.items() if name not in self._own}
        self._others = {name: self._others.get(name) or PullProgress(name) for name in others}
        for name, steps in others.items():
            for step in steps:
                self._others[name].add(step, self._clock())
