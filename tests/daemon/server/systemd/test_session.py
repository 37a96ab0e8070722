"""A daemon in the hands of a service manager: its sockets, notifications and watchdog, with real sockets."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.config.service_manager import PassedSocket, ServiceManager
from tests.serving.http import chat, open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon
from tests.serving.service_manager import notifications

LONG = {"max_tokens": 400, "ignore_eos": True}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_model(tmp_path / "data" / "models" / MODEL)
    return tmp_path


@pytest.fixture
def unix_socket(home: Path) -> Iterator[socket.socket]:
    (home / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(home / "run" / "llmd.sock"))
        sock.listen()
        yield sock


def passed(*sockets: socket.socket) -> tuple[PassedSocket, ...]:
    """Duplicates, which the daemon may close."""
    return tuple(PassedSocket(os.dup(sock.fileno()), "") for sock in sockets)


def stop_engine(daemon: RunningDaemon) -> int:
    """Stop the engine's process where it stands; returns its number."""
    (row,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
    pid: int = row["engine_pid"]
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_passed_sockets_are_used_and_outlive_the_daemon(
    home: Path, probes: Path, unix_socket: socket.socket
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        manager = ServiceManager(passed(unix_socket, tcp))
        with running_daemon(directories_below(home, probes), manager=manager) as daemon:
            assert daemon.tcp.port == tcp.getsockname()[1]
            assert daemon.serving.addresses[0] == daemon.client().address
            assert send(daemon, "GET", "/health", unix=True).status == 200
            assert chat(daemon).status == 200
        # Whoever connects now waits for the next daemon.
        with socket.create_connection(tcp.getsockname()), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(daemon.socket))


def test_only_kinds_of_sockets_that_were_not_passed_are_opened(
    home: Path, probes: Path, unix_socket: socket.socket
) -> None:
    directories, manager = directories_below(home, probes), ServiceManager(passed(unix_socket))
    with running_daemon(directories, models=(), manager=manager) as daemon:
        assert send(daemon, "GET", "/health").status == 200
        assert send(daemon, "GET", "/health", unix=True).status == 200
    assert os.path.lexists(daemon.socket)


def test_during_the_drain_new_connections_wait_for_the_next_daemon(
    home: Path, probes: Path, unix_socket: socket.socket
) -> None:
    manager = ServiceManager(passed(unix_socket))
    with running_daemon(directories_below(home, probes), manager=manager, drain_s=20.0) as daemon:
        with open_stream(daemon, LONG, unix=True) as reply:
            reply.readline()
            daemon.shut_down()
            with socket.socket(socket.AF_UNIX) as waiting:
                while True:  # until the daemon has left the socket to us
                    waiting.connect(str(daemon.socket))
                    unix_socket.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        unix_socket.accept()[0].close()
                        break
                    waiting.close()
                    waiting = socket.socket(socket.AF_UNIX)  # noqa: PLW2901 - the next attempt
            assert reply.read().endswith(b"data: [DONE]\n\n")
        daemon.thread.join()


def test_the_service_manager_learns_of_start_reload_and_end(home: Path, probes: Path) -> None:
    with notifications(str(home / "notify")) as received:
        manager = ServiceManager(notify_socket=received.address)
        with running_daemon(directories_below(home, probes), manager=manager) as daemon:
            begun = [received.next()]
            while "READY" not in begun[-1]:
                begun.append(received.next())
            assert {"STATUS": f"serving {MODEL}"} in begun
            assert "EXTEND_TIMEOUT_USEC" in {name for message in begun for name in message}
            daemon.reload()
            assert int(received.until("RELOADING")["MONOTONIC_USEC"]) > 0
            assert received.next() == {"READY": "1"}
            daemon.shut_down()
            assert received.until("STOPPING") == {"STOPPING": "1"}
            assert received.until("STATUS") == {"STATUS": "draining: 0 requests"}


def test_the_watchdog_is_not_pinged_while_an_engine_hangs(
    home: Path, probes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def withheld() -> int:
        return sum(record.message == "watchdog_not_pinged" for record in caplog.records)

    with notifications(str(home / "notify")) as received:
        manager = ServiceManager(notify_socket=received.address, watchdog_s=0.5)
        with running_daemon(directories_below(home, probes), manager=manager, engine_timeout_s=0) as daemon:
            received.until("WATCHDOG")
            pid = stop_engine(daemon)
            try:
                while not (first := withheld()):
                    pass
                received.waiting()
                while withheld() < first + 2:
                    pass
                assert not [message for message in received.waiting() if "WATCHDOG" in message]
            finally:
                os.kill(pid, signal.SIGCONT)
            received.until("WATCHDOG")
            assert chat(daemon).status == 200


def test_a_daemon_ends_when_it_is_idle_and_its_sockets_can_start_it_again(
    home: Path, probes: Path, unix_socket: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    manager = ServiceManager(passed(unix_socket))
    settings: dict[str, Any] = {"keep_alive": "50ms", "exit_idle_s": 0.2}
    with running_daemon(directories_below(home, probes), models=(), manager=manager, **settings) as daemon:
        assert chat(daemon).status == 200
        daemon.thread.join()
    events = [record.message for record in caplog.records]
    assert events.index("model_expired") < events.index("idle") < events.index("draining")
