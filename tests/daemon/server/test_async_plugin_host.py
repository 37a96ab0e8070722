from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from llmd.server.async_plugin_host import AsyncPluginHost


async def test_one_question_at_a_time_away_from_the_loop(tmp_path: Path) -> None:
    inside = 0

    def question(host: PluginHost) -> tuple[int, int]:
        nonlocal inside
        inside += 1
        seen = inside
        host.plugins()
        inside -= 1
        return seen, threading.get_ident()

    with ThreadPoolExecutor(4) as threads:
        desk = AsyncPluginHost(PluginHost((), Cache(tmp_path)), threads)
        answers = await asyncio.gather(*(desk.ask(question) for _ in range(8)))
    assert {seen for seen, _ in answers} == {1}
    assert threading.get_ident() not in {thread for _, thread in answers}
