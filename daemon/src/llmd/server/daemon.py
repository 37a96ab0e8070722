"""The daemon: builds its parts, runs until it is shut down, and drains."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, closing, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from llmd.api.errors import LlmdError
from llmd.api.machine import available_bytes
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.config import Address, Settings, UnixAddress
from llmd.config.keys import KeyFile
from llmd.config.listening import added_socket, listening_addresses
from llmd.config.log_place import NO_LOG, LogPlace
from llmd.config.service_manager import ServiceManager
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from llmd.registry.store import Store
from llmd.server.activity import shutting_down
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.device_check import DeviceCheck
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.errors import ParserMissingError
from llmd.server.heap import map_large_blocks
from llmd.server.http.access import Access
from llmd.server.http.certificate import certificate_for
from llmd.server.http.listeners import Listener, check_exposure, listen
from llmd.server.http.origins import allowed_origins
from llmd.server.http.passed_sockets import own_addresses, passed_listeners
from llmd.server.models.adapter_model import adapter_models
from llmd.server.models.kept_models import KeptModels
from llmd.server.models.memory_budget import MemoryBudget
from llmd.server.models.model_loading import ModelLoading
from llmd.server.models.model_manager import ModelManager
from llmd.server.models.model_settings import check_parsers, warn_of_unused
from llmd.server.models.model_table import ModelTable
from llmd.server.models.pulls import Pulls, pull_command
from llmd.server.reloader import Inputs, Reloader, ReloadReport
from llmd.server.service import Service
from llmd.server.systemd.notifier import Notifier
from llmd.server.systemd.session import ManagerSession
from llmd.server.tasks import OwnedTask, unless
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.log_buffer import LogBuffer
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.traces import open_traces

if TYPE_CHECKING:
    from llmd.server.frontend import Front

logger = logging.getLogger(__name__)

DISTRIBUTION = "llmd-daemon"
TEXT_THREADS = 4
QUIET_S = 3.0
"""Work that is not urgent after a start waits until no request has run for this long."""


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
        manager: ServiceManager | None = None,
        read_again: Callable[[], Inputs] | None = None,
        use_log_level: Callable[[str], None] = lambda _level: None,
        log: LogPlace = NO_LOG,
    ) -> None:
        """``engines`` may be given, e.g. with an engine already started; by default it is created here.

        ``read_again`` reads what the daemon was built from, for a reload; without it, only keys and
        certificate are read again.
        """
        self._host = host
        self._store = store
        self._names = tuple(models)
        self._aliases = aliases or {}
        self._benchmarks = benchmarks
        self._manager = manager or ServiceManager()
        self._notifier = Notifier(self._manager.notify_socket)
        self._engines = engines or EngineStarter.of(settings, watchdog_s=self._manager.watchdog_s)
        self._read_again = read_again
        self._use_log_level = use_log_level
        self._log = log
        self._reloader: Callable[[], Awaitable[ReloadReport]] | None = None
        self._reloading = asyncio.Lock()
        self._is_serving = False
        self._draining = asyncio.Event()
        self._ending = asyncio.Event()
        server = settings.config.server
        self._traces = open_traces(server.otlp_endpoint, version()) if server.otlp_endpoint else None
        self._metrics = Metrics(self._traces.tell if self._traces else None)
        keys = KeyFile(settings.directories.keys)
        self._access = Access(keys, no_auth=server.listen.no_auth, require_key=server.listen.require_key)
        configured = listening_addresses(settings)
        self._passed = passed_listeners(self._manager.sockets, configured)
        self._own_addresses = own_addresses(configured, self._passed)
        self._addresses = (*(listener.address for listener in self._passed), *self._own_addresses)
        self._origins = allowed_origins(
            server.listen.allow_origin, settings.origins["server.allow_origin"].source
        )
        self._certificate = certificate_for(self._addresses, server.listen.tls_cert, server.listen.tls_key)
        self._loading = ModelLoading(settings, host, store, self._engines, self._metrics)

    @property
    def _settings(self) -> Settings:
        return self._loading.settings

    def shut_down(self) -> None:
        """Refuse new requests and wait for those in flight; called a second time, end at once."""
        if self._draining.is_set():
            self._ending.set()
        self._draining.set()

    async def reload(self) -> ReloadReport:
        """Read keys and certificate again, then settings and plugins.

        Raises:
            LlmdError: something cannot be read or used. Settings and plugins are used all or not at all.
        """
        async with self._reloading:
            is_ready = self._is_serving and not self._draining.is_set()
            if is_ready:
                self._notifier.reloading()
            try:
                self._access.reload()
                if self._certificate is not None:
                    self._certificate.reload()
                report = ReloadReport() if self._reloader is None else await self._reloader()
            finally:
                if is_ready:
                    self._notifier.ready()
            logger.info("reloaded")
            return report

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
        check_parsers(self._host, self._settings)
        threads = ThreadPoolExecutor(TEXT_THREADS, thread_name_prefix="text")
        with (
            closing(self._traces) if self._traces else nullcontext(),
            threads,
            TemplateRenderer() as renderer,
            GrammarChecker() as checker,
            self._listen() as own,
        ):
            plugins = AsyncPluginHost(self._host, threads)
            benchmarks = Benchmarks(Cache(self._settings.directories.cache))
            manager = ModelManager(
                self._loading.loader(threads, renderer, checker),
                self._loading.measurer(plugins, benchmarks),
                MemoryBudget(server.models.max_memory, available_bytes),
                keep_alive_s=self._loading.keep_alive_s,
            )
            own_keep_alive_s = self._loading.own_keep_alive_s
            table = ModelTable(
                self._store,
                self._aliases,
                manager,
                own_keep_alive_s=own_keep_alive_s,
                adapters=lambda: adapter_models(self._settings),
            )
            kept = KeptModels(table, lambda: self._settings)
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
                benchmarks.known,
                logs,
                self._log,
            )
            async with AsyncExitStack() as http:
                work = unless(self._draining, self._load_models(kept, table), "loading models")
                loading = asyncio.Task(work, name="start")
                try:
                    await asyncio.get_running_loop().run_in_executor(threads, _import_front)
                    front = await self._open_front(http, service, [*self._passed, *own])
                    self._reloader = self._reload_into(front, service, manager, kept)
                    session = ManagerSession(
                        self._notifier, self._manager, service, self._engines.silence_s, self.shut_down
                    )
                    async with session:
                        await self._serve(service, front, session, loading, announce)
                finally:
                    self._reloader = None
                    loading.cancel()
                    await asyncio.gather(loading, return_exceptions=True)
                    await pulls.close(shutting_down())
                    await manager.close(shutting_down())

    def _listen(self) -> AbstractContextManager[tuple[Listener, ...]]:
        folder = self._settings.directories.user_socket.parent
        # Another daemon of the user may have the socket; this one was asked for its other addresses.
        return listen(self._own_addresses, user_folder=folder, dispensable=added_socket(self._settings))

    async def _open_front(self, http: AsyncExitStack, service: Service, listeners: list[Listener]) -> Front:
        from llmd.server.frontend import FrontParts, serve_http

        parts = FrontParts(service.config, self._host.dialects().values(), self._origins)
        served = serve_http(service, parts, listeners, self._certificate, self._access)
        return await http.enter_async_context(served)

    def _reload_into(
        self, front: Front, service: Service, manager: ModelManager, kept: KeptModels
    ) -> Callable[[], Awaitable[ReloadReport]] | None:
        read = self._read_again
        if read is None:
            return None
        reloader = Reloader(
            service,
            self._loading,
            manager,
            kept,
            self._engines,
            self._access,
            self._addresses,
            self._use_log_level,
        )
        return lambda: reloader.apply(front, read)

    async def _serve(
        self,
        service: Service,
        front: Front,
        session: ManagerSession,
        loading: Awaitable[None],
        announce: Callable[[Serving], None],
    ) -> None:
        await loading
        if not self._draining.is_set():
            service.is_serving = self._is_serving = True
            serving = Serving(service.version, front.addresses, self._served_names(service.models))
            announce(serving)
            session.ready()
            logger.info("serving", extra=serving.as_event())
        check = await self._check_devices(service)
        await self._draining.wait()
        logger.info("draining", extra={"running": service.activity.running})
        session.stopping()
        if self._passed:  # new connections wait for the next daemon
            front.stop_accepting()
        await service.pulls.close(shutting_down())  # requested again, they resume
        limit_s = self._settings.config.server.limits.drain_s
        await unless(self._ending, service.activity.drain(limit_s), "draining")
        if check is not None:
            check.stop()

    def _served_names(self, table: ModelTable) -> tuple[str, ...]:
        """Return the names of the loaded models, and the derived ones among those of the command line."""
        derived = [known[0] for name in self._names if (known := table.derived_of(name)) is not None]
        loaded = [model.name for model in table.served]
        return tuple(name for model in [*derived, *loaded] for name in table.names_of(model))

    async def _load_models(self, kept: KeptModels, table: ModelTable) -> None:
        begun = await kept.begin(self._names)
        warn_of_unused(self._settings, table.directories(), self._store.derived)
        for model in begun:
            # An error of a parser is logged; requests to the model get it, and other models answer.
            with model.in_use(), suppress(ParserMissingError):
                await model.ready()

    async def _check_devices(self, service: Service) -> DeviceCheck | None:
        """Measure devices once no request runs: measurements and requests would slow each other down."""
        if self._benchmarks is None:
            return None
        await unless(self._draining, service.activity.quiet(QUIET_S), "the first quiet moment")
        devices = await unless(self._draining, service.ask_host(PluginHost.devices), "probing devices")
        return DeviceCheck(self._benchmarks, devices) if devices else None

    def _pull_command(self) -> tuple[str, ...]:
        settings = self._settings
        return pull_command(
            settings.directories.models, settings.config.registry.hub, self._store.builtin_names
        )


def _import_front() -> None:
    """Import the HTTP stack. It is half of the daemon's imports; models named at the start load meanwhile."""
    import llmd.server.frontend  # noqa: F401 - only loaded


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
    reloads: set[OwnedTask] = set()
    loop.add_signal_handler(signal.SIGHUP, lambda: reloads.add(OwnedTask(_reload(daemon), "reload")))
    await daemon.run(begin)
    for task in reloads:
        await task.close()
    logger.info("ended")


def _collect_the_start() -> None:
    """Collect the garbage of the start, once: it takes too long to do it before a first answer."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.enable()


async def _reload(daemon: Daemon) -> None:
    try:
        await daemon.reload()
    except LlmdError as error:
        logger.error("not_reloaded", extra={"reason": str(error), "hint": error.hint})  # noqa: TRY400 - the reason says it all


def version() -> str:
    """Return the version of this installation."""
    return importlib.metadata.version(DISTRIBUTION)
