"""Daemons that hang, are of another version or refuse the key: found, and gone after the fix was typed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.cli.doctor.daemon import LARGE_LOG_BYTES, log_check
from tests.daemon.cli.doctor.patient import Patient, command_of

OLDER = """
import http.server, os, socketserver, sys
class Older(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b'{"version": "0.0.9"}')
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.answer(b"{}")
        os._exit(0)
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
    def address_string(self):
        return "a client"
    def log_message(self, *words):
        pass
class Server(socketserver.UnixStreamServer):
    request_queue_size = 8
server = Server(sys.argv[1], Older)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture
def older(patient: Patient) -> Iterator[Patient]:
    """A user whose daemon was started by an older llmd."""
    patient.home.socket.parent.mkdir(mode=0o700)
    with subprocess.Popen(
        [sys.executable, "-c", OLDER, str(patient.home.socket)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield patient
        process.kill()


def test_a_daemon_of_another_version(older: Patient) -> None:
    found = older.cured("daemon", "daemon")
    assert "version 0.0.9 runs at" in found["seen"]


def test_a_daemon_that_hangs(patient: Patient) -> None:
    with patient.home.serve() as served:
        assert patient.examined("daemon")["daemon"]["seen"].startswith("version ")
        served.process.send_signal(signal.SIGSTOP)
        found = patient.examined("daemon")["daemon"]
        assert (found["status"], "did not answer within 3 s" in found["seen"]) == ("fail", True)
        assert command_of(found["fix"]) == f"kill -KILL {served.process.pid}"
        patient.shell(command_of(found["fix"]))
        served.process.wait()
        assert patient.examined("daemon")["daemon"]["seen"] == "none is running"


def test_a_key_that_the_daemon_does_not_know(patient: Patient) -> None:
    assert patient.shell("llmd keys add laptop").returncode == 0
    with patient.home.serve("--addr", "127.0.0.1:0") as served:
        plant = f"export LLMD_HOST={served.url} LLMD_API_KEY=llmd-another-key-that-nobody-made"
        found = patient.cured("daemon", "daemon", plant=plant)
        assert "refuses the key: this API key is unknown" in found["seen"]
        assert command_of(found["fix"]) == "unset LLMD_API_KEY"


def test_a_key_that_is_missing(patient: Patient) -> None:
    made = patient.shell("llmd keys add laptop")
    with patient.home.serve("--addr", "127.0.0.1:0", "--require-key") as served:
        plant = f"export LLMD_HOST={served.url}"
        found = patient.examined("daemon", plant)["daemon"]
        assert (found["status"], "an API key is required" in found["seen"]) == ("fail", True)
        assert command_of(found["fix"]) == "llmd keys add NAME"
        given = f"{plant} LLMD_API_KEY={made.stdout.strip()}"
        assert patient.examined("daemon", given)["daemon"]["status"] == "ok"


def test_a_log_that_has_grown(patient: Patient) -> None:
    log = patient.home.state / "daemon.log"
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        file.truncate(LARGE_LOG_BYTES)
    assert patient.cured("daemon", "log")["seen"] == f"{log}, 100.0 MiB"
    assert log.stat().st_size == 0


def test_no_log_is_no_trouble(tmp_path: Path) -> None:
    assert log_check(tmp_path / "none").status == "ok"
