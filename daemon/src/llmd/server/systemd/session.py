"""Everything that a daemon and its service manager tell each other while the daemon runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from llmd.api.messages import Loading
from llmd.config.service_manager import ServiceManager
from llmd.server.service import Service
from llmd.server.systemd.idle_exit import idle_for
from llmd.server.systemd.notifier import Notifier
from llmd.server.systemd.progress import Progress, report_progress
from llmd.server.systemd.watchdog import ping_watchdog
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)


class ManagerSession:
    """An async context manager. Without a service manager it does nothing."""

    def __init__(
        self,
        notifier: Notifier,
        manager: ServiceManager,
        service: Service,
        silence_s: Callable[[], float],
        shut_down: Callable[[], None],
    ) -> None:
        """``silence_s`` returns for how long an engine has hung."""
        self._notifier = notifier
        self._manager = manager
        self._service = service
        self._silence_s = silence_s
        self._shut_down = shut_down
        self._stopping = False
        self._tasks: list[OwnedTask] = []

    def ready(self) -> None:
        """Say that the daemon serves."""
        self._notifier.status(self._progress().status)
        self._notifier.ready()

    def stopping(self) -> None:
        """Say that the daemon drains."""
        self._stopping = True
        self._notifier.stopping()
        self._notifier.status(self._progress().status)

    async def __aenter__(self) -> Self:
        if self._notifier.is_heard:
            work = report_progress(self._notifier, self._progress)
            self._tasks.append(OwnedTask(work, "progress for the service manager"))
        if self._notifier.is_heard and self._manager.watchdog_s is not None:
            pings = ping_watchdog(self._notifier, self._manager.watchdog_s, self._silence_s)
            self._tasks.append(OwnedTask(pings, "watchdog"))
        limit_s = self._service.config.limits.exit_idle_s
        if limit_s is not None and self._manager.sockets:
            self._tasks.append(OwnedTask(self._exit_when_idle(limit_s), "exit when idle"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            await task.close()

    async def _exit_when_idle(self, limit_s: float) -> None:
        await idle_for(self._service, limit_s)
        logger.info("idle", extra={"limit_s": limit_s})
        self._shut_down()

    def _progress(self) -> Progress:
        service = self._service
        if self._stopping:
            return Progress(f"draining: {service.activity.running} requests", needs_time=True)
        loading = [model for model in service.models.served if model.status == "loading"]
        loaded = [model.name for model in service.models.served if model.status == "loaded"]
        steps = [f"loading {model.name}{_share(model.supervisor.progress)}" for model in loading]
        parts = [*steps, *([f"serving {', '.join(loaded)}"] if loaded else [])]
        return Progress("; ".join(parts) or "no model is loaded", needs_time=not service.is_serving)


def _share(progress: Loading | None) -> str:
    return f" {100 * progress.done // progress.total} %" if progress and progress.total else ""
