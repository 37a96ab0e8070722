"""A real daemon in a thread of the test process, with real engine processes behind it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from msgspec import Struct

from llmd.client import Client
from llmd.config import Directories, Settings, TcpAddress, load_settings
from llmd.config.service_manager import ServiceManager
from llmd.engine.composition import make_host
from llmd.registry.store import Store
from llmd.server.daemon import Daemon, Serving
from llmd.server.reloader import Inputs, ReloadReport
from tests.serving.checked_replies import check_replies
from tests.serving.probed import seed_cache

MODEL = "tiny"
EMBEDDER = "embedder"
START_LIMIT_S = 25.0


class RunningDaemon(Struct, frozen=True):
    """A daemon that is ready."""

    serving: Serving
    directories: Directories
    daemon: Daemon
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    @property
    def tcp(self) -> TcpAddress:
        return next(address for address in self.serving.addresses if isinstance(address, TcpAddress))

    @property
    def url(self) -> str:
        return f"http://{self.tcp}"

    def client(self) -> Client:
        """A client of this daemon."""
        settings = load_settings(environ={}, directories=self.directories)
        return Client(f"unix:{self.socket}", settings=settings)

    @property
    def socket(self) -> Path:
        return self.directories.user_socket

    def reload(self) -> ReloadReport:
        """Let the daemon reload, as SIGHUP does."""
        return asyncio.run_coroutine_threadsafe(self.daemon.reload(), self.loop).result()

    def shut_down(self) -> None:
        """Ask the daemon to shut down, as SIGTERM does."""
        self.loop.call_soon_threadsafe(self.daemon.shut_down)


def directories_below(root: Path, cache: Path | None = None) -> Directories:
    """Return the directories of a temporary user; ``cache`` may be shared. One that is new has probes."""
    cache = cache or root / "cache"
    seed_cache(cache)
    return Directories(
        config=root / "config",
        data=root / "data",
        state=root / "state",
        cache=cache,
        user_socket=root / "run" / "llmd.sock",
        system_config=root / "system.toml",
        system_socket=root / "system.sock",
    )


@contextlib.contextmanager
def running_daemon(
    directories: Directories,
    *,
    models: Sequence[str] = (MODEL,),
    aliases: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    manager: ServiceManager | None = None,
    **flags: Any,
) -> Iterator[RunningDaemon]:
    """Serve models of ``directories.models`` on the reference backend until the block ends.

    By default streams get no pings: on a busy machine they would change what a test reads.
    """
    check_replies()
    defaults: dict[str, Any] = {
        "device": "reference",
        "kv_dtype": "f32",
        "drain_s": 0.0,
        "kv_memory": 64 << 20,
        "ping_s": 3600.0,
    }
    addr = [f"unix:{directories.user_socket}", "127.0.0.1:0"]
    given = {"addr": addr, **defaults, **flags}

    def read() -> Settings:
        return load_settings(given, environ=environ or {}, directories=directories)

    inputs = (read, tuple(models), aliases or {}, manager)
    events: SimpleQueue[RunningDaemon | BaseException] = SimpleQueue()
    thread = threading.Thread(target=_run, args=(*inputs, events), name="daemon of a test")
    thread.start()
    try:
        first = events.get(timeout=START_LIMIT_S)
        if isinstance(first, BaseException):
            raise first
        try:
            yield first
        finally:  # also where the test fails: it would wait for the daemon for ever
            with contextlib.suppress(RuntimeError):  # it has ended already
                first.shut_down()
                first.shut_down()
    finally:
        thread.join()


def _run(
    read: Callable[[], Settings],
    models: tuple[str, ...],
    aliases: Mapping[str, str],
    manager: ServiceManager | None,
    events: SimpleQueue[RunningDaemon | BaseException],
) -> None:
    async def main() -> None:
        settings = read()
        store = Store(settings.directories.models, {})

        def kept(settings: Settings) -> tuple[str, ...]:
            return settings.config.server.models.load or models

        def read_again() -> Inputs:
            settings = read()
            named = (alias.partition("=") for alias in settings.config.server.models.alias)
            known = {**aliases, **{name: model for name, _, model in named}}
            return Inputs(
                settings,
                known,
                make_host(settings.directories.cache),
                settings.config.server.models.load or models,
            )

        daemon = Daemon(
            settings,
            host=make_host(settings.directories.cache),
            store=store,
            models=kept(settings),
            aliases=aliases,
            manager=manager,
            read_again=read_again,
        )
        loop, thread = asyncio.get_running_loop(), threading.current_thread()
        await daemon.run(
            lambda serving: events.put(RunningDaemon(serving, settings.directories, daemon, loop, thread))
        )

    try:
        asyncio.run(main())
    except BaseException as error:  # noqa: BLE001 - handed to the test, which raises it
        events.put(error)
