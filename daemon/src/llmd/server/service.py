"""What handlers work with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from llmd.config import ServerConfig
from llmd.host.plugin_host import PluginHost
from llmd.server.activity import Activity
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.models.model_table import ModelTable
from llmd.server.models.pulls import Pulls
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.snapshots import Snapshots

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """The daemon as its dialects see it.

    ``shut_down`` begins a graceful end, ``reload`` reads keys and certificate anew. ``is_serving`` turns true once the
    models that were asked for are loaded.
    """

    def __init__(
        self,
        config: ServerConfig,
        version: str,
        models: ModelTable,
        plugins: AsyncPluginHost,
        pulls: Pulls,
        threads: ThreadPoolExecutor,
        shut_down: Callable[[], None],
        reload: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        self.config = config
        self.version = version
        self.models = models
        self.pulls = pulls
        self.activity = Activity()
        self.shut_down = shut_down
        self.reload = reload
        self.is_serving = False
        self.metrics = metrics
        self.snapshots = Snapshots(version, metrics, lambda: models.served)
        self._plugins = plugins
        self._threads = threads

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what blocks away from the event loop: templates, tokenizing, the disk."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))

    async def ask_host(self, question: Callable[[PluginHost], T]) -> T:
        """Ask the plugin host, which answers one thread at a time."""
        return await self._plugins.ask(question)
