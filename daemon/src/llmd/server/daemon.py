"""The daemon: builds its parts, runs until it is shut down, and drains."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.api.errors import ConfigError
from llmd.api.machine import available_bytes
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.config import Address, Settings, UnixAddress
from llmd.config.keys import KeyFile
from llmd.engine.placement.memory_need import MemoryNeed, memory_need
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from llmd.registry.store import Store
from llmd.server.activity import shutting_down
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.device_check import DeviceCheck
from llmd.server.engines.admission_limits import QueueLimits
from llmd.server.engines.engine_child import engine_command
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.supervisor import Admit, Supervisor
from llmd.server.heap import map_large_blocks
from llmd.server.http.access import Access
from llmd.server.http.certificate import certificate_for
from llmd.server.http.listeners import Listener, check_exposure, listen, listening_addresses
from llmd.server.http.origins import allowed_origins
from llmd.server.models.derived_model import AnsweringModel, DerivedServedModel
from llmd.server.models.load_message import load_message
from llmd.server.models.memory_budget import MemoryBudget
from llmd.server.models.model_leases import ModelLeases
from llmd.server.models.model_manager import Loader, Measure, ModelManager
from llmd.server.models.model_settings import check_parsers, parser_choice, warn_of_unused
from llmd.server.models.model_table import ModelTable
from llmd.server.models.pulls import Pulls, pull_command
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service
from llmd.server.tasks import unless
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.log_buffer import LogBuffer
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.traces import open_traces

logger = logging.getLogger(__name__)

DISTRIBUTION = "llmd-daemon"
TEXT_THREADS = 4
INPUT_PORTION = 4096
QUIET_S = 3.0
"""Work that is not urgent after a start waits until no request has run for this long."""
HttpFront = Callable[..., AbstractAsyncContextManager[None]]
KEEP_ALIVE_FLAG = "--keep-alive"
"""Models named on the command line stay loaded, unless this flag or their own table sets a keep-alive."""


class Serving(Struct, frozen=True):
    """What the daemon announces when it is ready."""

    version: str
    addresses: tuple[Address, ...]
    models: tuple[str, ...]

    def __str__(self) -> str:
        where = " and ".join(self._places())
        return f"llmd {self.version} listens on {where}; models: {', '.join(self.models) or 'none loaded'}"

    def as_event(self) -> dict[str, Any]:
        """Return the fields of the log event."""
        return {
            "version": self.version,
            "pid": os.getpid(),
            "addresses": self._places(),
            "models": self.models,
        }

    def _places(self) -> list[str]:
        return [
            str(address) if isinstance(address, UnixAddress) else address.url for address in self.addresses
        ]


class Daemon:
    """One daemon. ``models`` are loaded before it is ready, others at their first request."""

    def __init__(
        self,
        settings: Settings,
        *,
        host: PluginHost,
        store: Store,
        models: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        benchmarks: Benchmarks | None = None,
        engines: EngineStarter | None = None,
    ) -> None:
        """``engines`` may be given, e.g. with an engine already started; by default it is created here."""
        self._settings = settings
        self._host = host
        self._store = store
        self._names = tuple(models)
        self._aliases = aliases or {}
        self._benchmarks = benchmarks
        self._engines = engines or EngineStarter(engine_command(settings.directories.cache))
        self._draining = asyncio.Event()
        self._ending = asyncio.Event()
        server = settings.config.server
        self._traces = open_traces(server.otlp_endpoint, version()) if server.otlp_endpoint else None
        self._metrics = Metrics(self._traces.tell if self._traces else None)
        keys = KeyFile(settings.directories.keys)
        self._access = Access(keys, no_auth=server.listen.no_auth, require_key=server.listen.require_key)
        self._addresses = listening_addresses(settings)
        self._origins = allowed_origins(
            server.listen.allow_origin, settings.origins["server.allow_origin"].source
        )
        self._certificate = certificate_for(self._addresses, server.listen.tls_cert, server.listen.tls_key)

    def shut_down(self) -> None:
        """Refuse new requests and wait for those in flight; called a second time, end at once."""
        if self._draining.is_set():
            self._ending.set()
        self._draining.set()

    def reload(self) -> None:
        """Read the API keys and the certificate again.

        Raises:
            ConfigError: one of them cannot be read; it stays as it was.
        """
        self._access.reload()
        if self._certificate is not None:
            self._certificate.reload()
        logger.info("reloaded")

    async def run(self, announce: Callable[[Serving], None]) -> None:
        """Serve until `shut_down`. ``announce`` is called once, when the daemon is ready.

        Raises:
            ConfigError: an address is in use or would be open to the network, or a setting names no known
                parser.
            LlmdError: one of ``models`` cannot be loaded.
        """
        logs = LogBuffer()
        with logs.attached():
            await self._run(logs.feed, announce)

    async def _run(self, logs: Feed, announce: Callable[[Serving], None]) -> None:
        server = self._settings.config.server
        addresses = self._addresses
        for variable in self._settings.unknown:
            logger.warning("unknown_variable", extra={"variable": variable.name, "hint": variable.hint})
        check_exposure(addresses, protected=server.listen.no_auth or self._access.has_keys)
        check_parsers(self._host.parsers(), self._settings)
        threads = ThreadPoolExecutor(TEXT_THREADS, thread_name_prefix="text")
        with (
            closing(self._traces) if self._traces else nullcontext(),
            threads,
            TemplateRenderer() as renderer,
            GrammarChecker() as checker,
            listen(addresses, user_folder=self._settings.directories.user_socket.parent) as listeners,
        ):
            plugins = AsyncPluginHost(self._host, threads)
            manager = ModelManager(
                self._loader(threads, renderer, checker),
                self._measurer(plugins),
                MemoryBudget(server.models.max_memory, available_bytes),
                keep_alive_s=lambda name: self._settings.of_model(name).server.models.keep_alive,
            )
            table = ModelTable(self._store, self._aliases, manager)
            pulls = Pulls(self._pull_command())
            service = Service(
                server,
                version(),
                table,
                plugins,
                pulls,
                threads,
                self.shut_down,
                self.reload,
                self._metrics,
                Benchmarks(Cache(self._settings.directories.cache)).known,
                logs,
            )
            async with AsyncExitStack() as http:
                work = unless(self._draining, self._load_models(table), "loading models")
                loading = asyncio.Task(work, name="start")
                try:
                    serve_http = await asyncio.get_running_loop().run_in_executor(threads, _import_front)
                    dialects = self._host.dialects().values()
                    front = serve_http(
                        service, dialects, listeners, self._certificate, self._access, self._origins
                    )
                    await http.enter_async_context(front)
                    await self._serve(service, listeners, loading, announce)
                finally:
                    loading.cancel()
                    await asyncio.gather(loading, return_exceptions=True)
                    await pulls.close(shutting_down())
                    await manager.close(shutting_down())

    async def _serve(
        self,
        service: Service,
        listeners: Sequence[Listener],
        loading: Awaitable[None],
        announce: Callable[[Serving], None],
    ) -> None:
        await loading
        if not self._draining.is_set():
            service.is_serving = True
            addresses = tuple(listener.address for listener in listeners)
            names = tuple(name for model in service.models.served for name in service.models.names_of(model))
            serving = Serving(service.version, addresses, names)
            announce(serving)
            logger.info("serving", extra=serving.as_event())
        check = await self._check_devices(service)
        await self._draining.wait()
        logger.info("draining", extra={"running": service.activity.running})
        await service.pulls.close(shutting_down())  # requested again, they resume
        limit_s = self._settings.config.server.limits.drain_s
        await unless(self._ending, service.activity.drain(limit_s), "draining")
        if check is not None:
            check.stop()

    async def _load_models(self, table: ModelTable) -> None:
        served = [await table.resolve(name, allow_path=True) for name in self._names]
        for model in served:
            if not self._says_how_long(model):
                model.leases.pin()
        warn_of_unused(self._settings, table.directories())
        for model in served:
            await model.ready()

    def _says_how_long(self, model: AnsweringModel) -> bool:
        """Whether the user has set how long a model named at the start stays loaded."""
        key = "server.keep_alive"
        name = model.base.name if isinstance(model, DerivedServedModel) else model.name
        by_flag = self._settings.origins[key].source == KEEP_ALIVE_FLAG
        return by_flag or key in self._settings.models.get(name, {})

    async def _check_devices(self, service: Service) -> DeviceCheck | None:
        """Measure devices once no request runs: measurements and requests would slow each other down."""
        if self._benchmarks is None:
            return None
        await unless(self._draining, service.activity.quiet(QUIET_S), "the first quiet moment")
        devices = await unless(self._draining, service.ask_host(PluginHost.devices), "probing devices")
        return DeviceCheck(self._benchmarks, devices) if devices else None

    def _loader(
        self, threads: ThreadPoolExecutor, renderer: TemplateRenderer, checker: GrammarChecker
    ) -> Loader:
        engines, parsers = self._engines, self._host.parsers()

        def load(name: str, directory: Path, leases: ModelLeases, admit: Admit) -> ServedModel:
            config = self._settings.of_model(name)
            # The current version of the model: an engine that is restarted must find the same files.
            lease = self._store.pulled_models.lease(directory)
            files = directory if lease is None else directory.resolve()
            message = load_message(files, config.engine)
            queue = config.server.queue
            limits = QueueLimits(queue.max_queue, queue.max_queue_per_key, queue.max_queue_tokens)
            supervisor = Supervisor(
                name,
                message,
                engines,
                buffer_tokens=queue.buffer_tokens,
                limits=limits,
                admit=admit,
                metrics=self._metrics.of_model(name),
            )
            choice = parser_choice(parsers, config)

            async def read_text() -> ModelText:
                # Reading a large vocabulary holds the GIL for tenths of a second, so the engine gets its load
                # message first.
                await supervisor.load_sent.wait()
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(threads, load_model_text, files, renderer, choice, checker)

            text = asyncio.Task(read_text(), name=f"text of {name}")
            return ServedModel(name, directory, supervisor, text, leases, lease)

        return load

    def _pull_command(self) -> tuple[str, ...]:
        settings = self._settings
        return pull_command(
            settings.directories.models, settings.config.registry.hub, self._store.builtin_names
        )

    def _measurer(self, plugins: AsyncPluginHost) -> Measure:
        async def measure(name: str, directory: Path) -> Mapping[str, MemoryNeed]:
            message = load_message(directory, self._settings.of_model(name).engine)
            return await plugins.ask(
                lambda host: memory_need(
                    message, host.architectures(), lambda name: host.choose_device(name).info
                )
            )

        return measure


def _import_front() -> HttpFront:
    """Import the HTTP stack. It is half of the daemon's imports; models named at the start load meanwhile."""
    from llmd.server.frontend import serve_http

    return serve_http


@contextmanager
def end_with_input(daemon: Daemon) -> Iterator[None]:
    """End a daemon at once when standard input ends: the program that started it has ended."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(stdin, INPUT_PORTION):
            loop.remove_reader(stdin)
            daemon.shut_down()
            daemon.shut_down()

    try:
        loop.add_reader(stdin, read)
    except PermissionError:  # a file, or /dev/null: nobody is there who could end
        daemon.shut_down()
    try:
        yield
    finally:
        loop.remove_reader(stdin)


async def run_until_signal(daemon: Daemon, announce: Callable[[Serving], None]) -> None:
    """Run a daemon in this process until SIGTERM or SIGINT; a second signal ends it without waiting."""
    loop = asyncio.get_running_loop()

    def begin(serving: Serving) -> None:
        announce(serving)
        # A full collection also scans the objects that stay for ever, and runs only when a quarter of all
        # objects is new. Until then the garbage of requests accumulated, and every request waited for the
        # collection (0.19 s; with the objects frozen 3 ms).
        gc.freeze()
        loop.call_later(QUIET_S, _collect_the_start)

    map_large_blocks()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.shut_down)
    loop.add_signal_handler(signal.SIGHUP, _reload, daemon)
    await daemon.run(begin)
    logger.info("ended")


def _collect_the_start() -> None:
    """Collect the garbage of the start, once: it takes too long to do it before a first answer."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.enable()


def _reload(daemon: Daemon) -> None:
    try:
        daemon.reload()
    except ConfigError as error:
        logger.error("not_reloaded", extra={"reason": str(error)})  # noqa: TRY400 - the reason says it all


def version() -> str:
    """Return the version of this installation."""
    return importlib.metadata.version(DISTRIBUTION)
