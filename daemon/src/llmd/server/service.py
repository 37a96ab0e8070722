"""What request handlers work with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from llmd.config import ServerConfig
from llmd.config.log_place import NO_LOG, LogPlace
from llmd.engine.placement.prediction import Prediction
from llmd.host.plugin_host import PluginHost
from llmd.server.activity import Activity
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.model_states import ModelStates
from llmd.server.models.model_table import ModelTable
from llmd.server.models.pulls import Pulls
from llmd.server.models.served_model import ServedModel
from llmd.server.snapshots import Snapshots
from llmd.server.telemetry.device_facts import DeviceFacts, Known
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.predictions import Predictions

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """The daemon as its dialects see it.

    ``shut_down`` begins a graceful shutdown; ``reload`` reads keys, certificate, settings and plugins again.
    ``is_serving`` becomes true once the models named at the start are loaded. ``measured`` reads the rates of
    a device, if they were measured. ``logs`` has the latest log records.
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
        reload: Callable[[], Awaitable[object]],
        metrics: Metrics,
        measured: Known,
        logs: Feed,
        log_place: LogPlace = NO_LOG,
    ) -> None:
        self.config = config
        self.version = version
        self.models = models
        self.pulls = pulls
        self.activity = Activity()
        self.shut_down = shut_down
        self.reload = reload
        self.log_place = log_place
        self.is_serving = False
        self.metrics = metrics
        self.states = ModelStates(metrics, lambda: models.served, self.device_facts, self.predicted)
        self.snapshots = Snapshots(version, metrics, self.states)
        self.measured = measured
        self.predictions = Predictions(measured)
        self.logs = logs
        self._plugins = plugins
        self._threads = threads

    def use(self, config: ServerConfig, host: PluginHost, aliases: Mapping[str, str]) -> None:
        """Use other settings, plugins and aliases for later requests."""
        self.config = config
        self._plugins.replace(host)
        self.models.aliases = aliases

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work off the event loop: templates, tokenizing, disk access."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))

    async def ask_host(self, question: Callable[[PluginHost], T]) -> T:
        """Call ``question`` with the plugin host, which serves one thread at a time."""
        return await self._plugins.ask(question)

    async def device_facts(self) -> DeviceFacts:
        """Return what the plugin host knows of devices while models run."""
        return await self.ask_host(lambda host: DeviceFacts.of(host, self.measured))

    async def predicted(self, models: Sequence[ServedModel]) -> dict[str, Prediction]:
        """Return the predicted times of loaded models by name, without those that are not known."""
        loads = {model.name: (model.supervisor.load, model.loaded.stages) for model in models if model.loaded}
        found = await self.ask_host(
            lambda host: {name: self.predictions.of(host, *one) for name, one in loads.items()}
        )
        return {name: prediction for name, prediction in found.items() if prediction}
