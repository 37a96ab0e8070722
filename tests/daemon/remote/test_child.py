"""The process ends when the engine's end of its standard input is closed, before or after it is watched."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

WATCHES = """
import sys, time
from llmd.remote.child import end_with

if sys.argv[1] == "late":
    sys.stdin.read()
end_with(0)
print("watching", flush=True)
while True:
    time.sleep(1000) if sys.argv[1] == "asleep" else None
"""


@pytest.mark.parametrize("doing", ["asleep", "busy"])
def test_a_closed_pipe_ends_the_process_whatever_it_does(doing: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHES, doing], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"watching\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(20) == -signal.SIGKILL


def test_a_pipe_that_was_closed_before_ends_it_at_once() -> None:
    found = subprocess.run(
        [sys.executable, "-c", WATCHES, "late"], input=b"", capture_output=True, check=False
    )
    assert found.returncode == 1
    assert found.stdout == b""


def test_no_job_ends_it() -> None:
    found = subprocess.run([sys.executable, "-m", "llmd.remote"], input=b"", capture_output=True, check=False)
    assert found.returncode == 1
