"""A process that dies, hangs or talks nonsense is a lost device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from llmd.api.device import DeviceInfo
from llmd.api.errors import DeviceError, DeviceLostError
from llmd.api.kernel_use import KernelUse
from llmd.api.transport import Link, send
from llmd.remote import connection
from llmd.remote.array_frames import ArrayFrame, ArrayFrameReader
from llmd.remote.connection import CALL_LIMIT_S, Connection, limited
from llmd.remote.errors import report_of
from llmd.remote.messages import DeviceStatus, GetKVBytes, GetStatus, ReleaseTicket, Reply, Request
from tests.plugins.transport.shared_links import linked

PATIENCE_S = 20.0


class Peer:
    """The other end of a connection; its process only sleeps."""

    def __init__(self, near: Link, far: Link) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        self.connection = Connection(near, self.process, "card")
        self.link = far

    def reply(self, reply: Reply[object]) -> None:
        frame = ArrayFrame(reply)
        buffer = memoryview(bytearray(frame.num_bytes))
        frame.write_to(buffer)
        send(self.link, [buffer], PATIENCE_S)

    def request(self) -> object:
        reader: ArrayFrameReader[Request] = ArrayFrameReader(Request)  # type: ignore[arg-type]
        with self.link.receive(PATIENCE_S) as data:
            return reader.read(data)


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setattr(connection, "GRACE_S", 0.0)
    monkeypatch.setattr(connection, "END_LIMIT_S", 0.0)
    with ExitStack() as stack:
        peer = Peer(*stack.enter_context(linked()))
        stack.callback(peer.connection.close)
        yield peer


def test_replies_are_results_or_errors(peer: Peer) -> None:
    peer.reply(Reply(progress=(1, 2)))
    peer.reply(Reply(7))
    seen: list[tuple[int, int]] = []
    found = peer.connection.call(
        GetKVBytes(1, 2, "f16"), on_progress=lambda done, total: seen.append((done, total))
    )
    assert (found, seen) == (7, [(1, 2)])
    peer.reply(Reply(error=report_of(DeviceError("too hot"))))
    with pytest.raises(DeviceError, match="too hot"):
        peer.connection.call(GetKVBytes(1, 2, "f32"))
    assert [peer.request() for _ in range(2)] == [GetKVBytes(1, 2, "f16"), GetKVBytes(1, 2, "f32")]


def test_a_process_that_does_not_answer_is_killed(peer: Peer) -> None:
    with pytest.raises(DeviceLostError, match="card: its process does not answer") as caught:
        peer.connection.call(GetStatus(), 0.0)
    assert caught.value.devices == ("card",)
    assert peer.process.wait(PATIENCE_S) == -signal.SIGKILL
    peer.connection.tell(ReleaseTicket(1, 1))
    with pytest.raises(DeviceLostError):
        peer.connection.call(GetStatus())


def test_a_process_that_ended_is_a_lost_device(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "END_LIMIT_S", PATIENCE_S)
    os.kill(peer.process.pid, signal.SIGKILL)
    peer.link.close()
    with pytest.raises(DeviceLostError, match="its process ended with status -9"):
        peer.connection.call(GetStatus())


@pytest.mark.parametrize("frame", [b"", b"nonsense of more than twelve bytes"])
def test_nonsense_is_a_lost_device(peer: Peer, frame: bytes) -> None:
    send(peer.link, [frame], PATIENCE_S)
    with pytest.raises(DeviceLostError, match="cannot be understood"):
        peer.connection.call(GetStatus())
    assert peer.process.wait(PATIENCE_S) == -signal.SIGKILL


def test_the_status_does_not_wait_for_a_step(peer: Peer) -> None:
    peer.reply(Reply(5, status=DeviceStatus(9)))
    assert peer.connection.call(GetKVBytes(1, 2, "f32")) == 5
    assert peer.connection.last_status == DeviceStatus(9)
    now = DeviceStatus(11, 3, {1: KernelUse(("graphs",))})
    peer.reply(Reply(now))
    assert peer.connection.status() == now
    failed: list[Exception] = []

    def step() -> None:
        try:
            peer.connection.call(GetKVBytes(1, 2, "f32"))
        except DeviceLostError as error:
            failed.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    assert [type(peer.request()) for _ in range(3)] == [GetKVBytes, GetStatus, GetKVBytes]
    assert peer.connection.status() == now
    peer.connection.close()
    thread.join(PATIENCE_S)
    assert peer.connection.status() == now
    assert len(failed) == 1, "closing ends the wait for a reply"


def test_a_status_that_was_never_known_is_an_error(peer: Peer) -> None:
    peer.link.close()
    with pytest.raises(DeviceLostError):
        peer.connection.status()


def test_the_device_is_known_once_it_is_open(peer: Peer) -> None:
    info = DeviceInfo("card", "made", 1, 1, ("f32",), ("f32",), ())
    peer.reply(Reply(info))
    assert peer.connection.opened(PATIENCE_S) == info


def test_a_wait_without_a_limit_gets_one() -> None:
    assert limited(np.inf) == CALL_LIMIT_S
    assert limited(2.0) == 2.0
