"""Starts engines for models with the current settings and plugins."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from llmd.api.messages import Load
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.config import Config, Settings
from llmd.engine.placement.candidates import MachineDevices, Room
from llmd.engine.placement.estimate import Estimate, estimate
from llmd.host.benchmarks import Benchmarks
from llmd.host.plugin_host import PluginHost
from llmd.registry.store import Store
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.engines.admission_limits import QueueLimits
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.supervisor import Admit, Supervisor
from llmd.server.models.load_message import load_message_of
from llmd.server.models.model_leases import ModelLeases
from llmd.server.models.model_manager import Loader, Measure
from llmd.server.models.model_settings import missing_parser, parser_choice
from llmd.server.models.served_model import ServedModel
from llmd.server.telemetry.metrics import Metrics

KEEP_ALIVE = "server.keep_alive"


class ModelLoading:
    """``settings`` and ``host`` may be replaced; models that are loaded later use the new ones."""

    def __init__(
        self, settings: Settings, host: PluginHost, store: Store, engines: EngineStarter, metrics: Metrics
    ) -> None:
        self.settings = settings
        self.host = host
        self._store = store
        self._engines = engines
        self._metrics = metrics

    def keep_alive_s(self, name: str) -> float:
        """Return how long a model stays loaded after its last request."""
        return self.settings.of_model(name).server.models.keep_alive

    def own_keep_alive_s(self, name: str) -> float | None:
        """Return the keep-alive of the table of settings for a name; None: there is none."""
        own = self.settings.models.get(name, {}).get(KEEP_ALIVE)
        return None if own is None else float(own.value)

    def loader(
        self, threads: ThreadPoolExecutor, renderer: TemplateRenderer, checker: GrammarChecker
    ) -> Loader:
        """Return the function that starts to load a model."""

        def load(name: str, directory: Path, leases: ModelLeases, admit: Admit) -> ServedModel:
            config = self.settings.of_model(name)
            # The current version of the model: an engine that is restarted must find the same files.
            lease = self._store.pulled_models.lease(directory)
            files = directory if lease is None else directory.resolve()
            supervisor = Supervisor(
                name,
                load_message_of(name, files, self.settings),
                self._engines,
                buffer_tokens=config.server.queue.buffer_tokens,
                limits=queue_limits(config),
                admit=admit,
                metrics=self._metrics.of_model(name),
            )
            host = self.host
            choice = msgspec.structs.replace(
                parser_choice(host.parsers(), config),
                on_failure=lambda parser, error: host.note_failure("parser", parser, error),
            )
            missing = missing_parser(host, name, choice)

            async def read_text() -> ModelText:
                # Reading a large vocabulary holds the GIL for tenths of a second, so the engine gets its load
                # message first.
                await supervisor.load_sent.wait()
                if missing is not None:
                    raise missing
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(threads, load_model_text, files, renderer, choice, checker)

            text = asyncio.Task(read_text(), name=f"text of {name}")
            return ServedModel(name, directory, supervisor, text, leases, lease)

        return load

    def measurer(self, plugins: AsyncPluginHost, benchmarks: Benchmarks) -> Measure:
        """Return the function that chooses the devices of a load and estimates the memory that it needs."""

        async def measure(load: Load, room: Room) -> Estimate:
            return await plugins.ask(
                lambda host: estimate(load, host.architectures(), MachineDevices(host, benchmarks, room))
            )

        return measure


def queue_limits(config: Config) -> QueueLimits:
    """Return the limits of a model's queue."""
    queue = config.server.queue
    return QueueLimits(queue.max_queue, queue.max_queue_per_key, queue.max_queue_tokens)
