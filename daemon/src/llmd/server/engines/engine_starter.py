"""Starts engine processes, one of them in advance, before its model is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from llmd.server.engines.engine_child import EngineChild, engine_command, start_child
from llmd.server.tasks import OwnedTask

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd.server.engines.engine_process import EngineProcess

logger = logging.getLogger(__name__)

RESTOCK_S = 1.0
"""Delay of the next spare engine after a start: its imports would slow the load of a small model."""


class EngineStarter:
    """Starts engines with ``command``. An async context manager that ends the unused spare engine.

    A process takes a few tenths of a second until it can load a model, mostly for imports. With
    ``keeps_spare``, one is started in advance, and another one some time after it was taken.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        keeps_spare: bool = False,
        kill_hung_s: float | None = None,
        watchdog_s: float | None = None,
    ) -> None:
        """Engines that hang for ``kill_hung_s`` are killed; `silence_s` is in time for ``watchdog_s``."""
        self._command = tuple(command)
        self._keeps_spare = keeps_spare
        self._kill_hung_s = kill_hung_s
        self._probe_s = min((limit for limit in (kill_hung_s, watchdog_s) if limit), default=0.0) / 4
        self._started: WeakSet[EngineProcess] = WeakSet()
        self._spare: EngineChild | None = None
        self._restocking: OwnedTask | None = None

    @classmethod
    def of(cls, settings: Settings, *, keeps_spare: bool = False, watchdog_s: float | None = None) -> Self:
        """Return a starter of engines with the directories and limits of the settings."""
        return cls(
            engine_command(settings.directories.cache, settings.directories.plugin_choices),
            keeps_spare=keeps_spare,
            kill_hung_s=settings.config.server.limits.engine_timeout_s or None,
            watchdog_s=watchdog_s,
        )

    async def start(self, model: str) -> EngineProcess:
        """Return an engine that waits for its `Load`; ``model`` is its name in the log.

        Raises:
            OSError: the process cannot be started.
        """
        # Imported here: they need NumPy, which would delay the first spare engine by a tenth of a second.
        from llmd.server.engines.engine_process import EngineProcess
        from llmd.server.engines.hang_detector import HangLimits

        spare, self._spare = self._spare, None
        if spare is not None and spare.has_ended:
            await spare.end()
            spare = None
        child = spare or await start_child(self._command)
        engine = await EngineProcess.adopt(child, HangLimits(self._probe_s, self._kill_hung_s))
        engine.model = model
        self._started.add(engine)
        if self._keeps_spare:
            await self._stop_restocking()
            self._restocking = OwnedTask(self._restock(), "spare engine")
        return engine

    def silence_s(self) -> float:
        """Return for how long the engine that has hung longest has hung; 0 if none hangs."""
        return max((engine.silent_s for engine in self._started if not engine.has_ended), default=0.0)

    async def replace_spare(self) -> None:
        """Start the spare engine again, so that it knows plugins installed since it was started."""
        if self._spare is not None:
            await self._stop_restocking()
            await self._spare.end()
            await self._start_spare()

    async def _restock(self) -> None:
        await asyncio.sleep(RESTOCK_S)
        await self._start_spare()

    async def _start_spare(self) -> None:
        try:
            self._spare = await start_child(self._command)
        except OSError as error:  # if this persists, the next load reports it
            logger.warning("no_spare_engine", extra={"reason": str(error)})

    async def _stop_restocking(self) -> None:
        if self._restocking is not None:
            await self._restocking.close()

    async def __aenter__(self) -> Self:
        if self._keeps_spare:
            await self._start_spare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop_restocking()
        if self._spare is not None:
            await self._spare.end()
            self._spare = None
