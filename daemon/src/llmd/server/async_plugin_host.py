"""Asynchronous access to the plugin host, which serves one thread at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from llmd.host.plugin_host import PluginHost

T = TypeVar("T")


class AsyncPluginHost:
    def __init__(self, host: PluginHost, threads: ThreadPoolExecutor) -> None:
        self._host = host
        self._threads = threads
        self._turn = asyncio.Lock()

    def replace(self, host: PluginHost) -> None:
        """Use another host from the next question on."""
        self._host = host

    async def ask(self, question: Callable[[PluginHost], T]) -> T:
        """Call ``question`` in a thread, because probes take time."""
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, question, self._host)
