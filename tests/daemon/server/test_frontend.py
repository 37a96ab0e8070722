"""The routes of all dialects are served behind access checks, and are imported only when served."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.serving.http import send
from tests.serving.running import RunningDaemon


@pytest.mark.parametrize(
    "path", ["/v1/models", "/api/tags", "/health", "/props", "/llmd/models"], ids=lambda path: path[1:]
)
def test_dialects_are_served_side_by_side(daemon: RunningDaemon, path: str) -> None:
    assert send(daemon, "GET", path).status == 200


def test_a_host_name_that_is_not_of_this_machine_is_refused(daemon: RunningDaemon) -> None:
    assert send(daemon, "GET", "/v1/models", headers={"Host": "evil.example"}).status == 403


def test_the_daemon_loads_models_before_it_imports_what_serves_them() -> None:
    code = "import sys, llmd.server.daemon; print('aiohttp' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
