from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from llmd.server.systemd.idle_exit import idle_for
from tests.serving.http import open_stream
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon


def test_a_loaded_model_keeps_the_daemon(tmp_path: Path, probes: Path, monkeypatch: Any) -> None:
    services: list[Any] = []
    monkeypatch.setattr(
        "llmd.server.systemd.session.ManagerSession.ready", lambda self: services.append(self._service)
    )
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as daemon:
        (service,) = services

        def wait(limit_s: float) -> bool:
            idle = asyncio.wait_for(idle_for(service, 0.01), limit_s)
            try:
                asyncio.run_coroutine_threadsafe(idle, daemon.loop).result()
            except TimeoutError:
                return False
            return True

        with open_stream(daemon, {"max_tokens": 3}) as reply:
            reply.read()
        assert not wait(0.3)
        daemon.client().stop(MODEL)
        assert wait(20.0)
