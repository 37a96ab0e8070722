"""Stopping a daemon takes as long as its last requests, and says so on a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from llmd.api.errors import DaemonUnreachableError
from llmd.cli.daemon_end import process_end, stop_and_wait, waiting
from tests.serving.http import open_stream
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

LONG = {"max_tokens": 1 << 14, "ignore_eos": True}


class Screen(io.StringIO):
    """A terminal of which everything is kept."""

    def isatty(self) -> bool:
        return True


def test_says_what_it_waits_for_and_returns_when_the_daemon_has_ended(
    tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    screen = Screen()
    with running_daemon(directories, drain_s=60.0) as daemon:
        stopping = threading.Thread(target=stop_and_wait, args=(daemon.client(), screen), name="stop")
        with open_stream(daemon, LONG) as stream:
            stream.readline()
            stopping.start()
            while waiting(1) not in screen.getvalue():
                assert stopping.is_alive()
                time.sleep(0.01)  # the daemon runs in this process, too
            stop_again = daemon.client().stopping()
            assert next(stop_again) == 1
            stop_again.close()
        stopping.join()
        with pytest.raises(DaemonUnreachableError):
            daemon.client().version()


def test_the_end_of_a_process_is_awaited() -> None:
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as process:
        with process_end(process.pid) as wait:
            assert process.poll() is None
            assert process.stdin is not None
            process.stdin.close()
            wait()
        assert process.poll() is not None
        with process_end(process.pid) as wait:  # it is gone
            wait()
    with process_end(os.getpid()) as wait:
        wait()


def test_requests_are_counted_in_words() -> None:
    assert waiting(0) == "the daemon ends"
    assert waiting(1).startswith("waiting for 1 request;")
    assert waiting(2).startswith("waiting for 2 requests;")
