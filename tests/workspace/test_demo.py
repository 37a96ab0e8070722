"""`make demo` shows a daemon that answers, and fails if it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "tools" / "demo.py"
NOBODY = "http://127.0.0.1:9"


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo behind a proxy that cannot reach this machine."""
    return subprocess.run(
        [sys.executable, DEMO, *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"http_proxy": NOBODY},
    )


@pytest.mark.timeout(120)
def test_starts_a_daemon_shows_devices_answers_twice_and_ends() -> None:
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout.split("\n$ ")
    assert [part.split("\n")[0].split()[:2] for part in shown[1:]] == [
        ["llmd", "serve"],
        ["llmd", "devices"],
        ["llmd", "run"],
        ["curl", shown[4].split()[1]],
        ["llmd", "ps"],
        ["llmd", "stop"],
    ]
    assert "models: guide" in shown[1]
    assert "cpu" in shown[2]
    assert "llmd devices" in shown[3].split("\n", 1)[1]
    assert "llmd stop --daemon" in shown[4].split("\n", 1)[1]
    assert "tokens/s" in done.stderr
    assert "the daemon has stopped" in shown[-1]


def test_fails_where_the_daemon_does_not_start() -> None:
    done = demo("no-such-model")
    assert done.returncode == 1
    assert "the daemon did not start" in done.stderr
