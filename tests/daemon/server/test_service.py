from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmd.config import ServerConfig
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from llmd.registry.store import Store
from llmd.server.async_plugin_host import AsyncPluginHost
from llmd.server.models.model_table import ModelTable
from llmd.server.models.pulls import Pulls
from llmd.server.service import Service
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.metrics import Metrics
from tests.serving.model_managers import bare_model, residents_of


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    async def reload() -> None:
        pass

    table = ModelTable(Store(tmp_path, {}), {}, residents_of(bare_model))
    with ThreadPoolExecutor(2) as threads:
        plugins = AsyncPluginHost(PluginHost((), Cache(tmp_path)), threads)
        yield Service(
            ServerConfig(),
            "0",
            table,
            plugins,
            Pulls(()),
            threads,
            lambda: None,
            reload,
            Metrics(),
            Benchmarks(Cache(tmp_path)).known,
            Feed(),
        )


async def test_what_blocks_runs_away_from_the_loop(service: Service) -> None:
    assert await service.in_thread(threading.get_ident) != threading.get_ident()
    assert await service.in_thread(int, "12", base=8) == 10


async def test_errors_come_back_from_the_thread(service: Service) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await service.in_thread(int, "x")


async def test_host_is_asked(service: Service) -> None:
    assert await service.ask_host(lambda host: host.plugins()) == ()
