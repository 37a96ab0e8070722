"""Links between processes: what tests/conformance/transports cannot see, since it stays in one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from llmd.api import LinkClosedError, LinkError
from llmd.api.transport import Link, send
from llmd_transport.local_addresses import listen
from llmd_transport.shared_memory_link import BUFFER_BYTES
from tests.plugins.transport.shared_links import linked

PATIENCE_S = 20.0
ECHO = """
import sys
from llmd.api import LinkClosedError
from llmd.api.transport import send
from llmd_transport.local_addresses import connect

link = connect(sys.argv[1], 20.0)
send(link, [b"ready"], 20.0)
try:
    while True:
        with link.receive(20.0) as data:
            send(link, [data, b"!"], 20.0)
except LinkClosedError:
    link.close()
"""


@contextmanager
def peer() -> Iterator[tuple[Link, subprocess.Popen[bytes]]]:
    """Yield a link to a process that sends back what it gets."""
    with closing(listen("local://")) as listener:
        process = subprocess.Popen([sys.executable, "-c", ECHO, listener.address])
        try:
            link = listener.accept(PATIENCE_S)
            assert received(link) == b"ready"
            with closing(link):
                yield link, process
        finally:
            process.kill()
            process.wait()


def received(link: Link) -> bytes:
    with link.receive(PATIENCE_S) as data:
        return bytes(data)


def test_frames_cross_between_processes() -> None:
    with peer() as (link, process):
        for number in range(3):
            frame = bytes([number]) * (number * 100_000)
            send(link, [frame], PATIENCE_S)
            assert received(link) == frame + b"!"
        link.close()
        assert process.wait(PATIENCE_S) == 0, "the peer learns that the link was closed"


def test_a_killed_peer_closes_the_link_and_what_it_sent_arrives() -> None:
    with peer() as (link, process):
        send(link, [b"last"], PATIENCE_S)
        frame = link.receive(PATIENCE_S)
        send(link, [b"unread"], PATIENCE_S)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert bytes(frame.data) == b"last!", "a frame outlives its sender"
        frame.release()
        with suppress(LinkClosedError):  # the peer may have answered the second frame, too
            assert received(link) == b"unread!"
        with pytest.raises(LinkClosedError):
            link.receive(PATIENCE_S)
        with pytest.raises(LinkClosedError):
            send(link, [b"too late"], PATIENCE_S)


def test_frames_that_were_not_read_arrive_after_a_peer_with_unread_news_was_killed() -> None:
    with linked() as (near, far):
        for frame in (b"first", b"second"):
            send(near, [frame], PATIENCE_S)
        assert received(far) == b"first"  # its release is news for the near end, which it never reads
        near._sender._socket.close()  # type: ignore[attr-defined] # as the system does for a killed process
        assert received(far) == b"second"
        with pytest.raises(LinkClosedError):
            far.receive(PATIENCE_S)


def held() -> tuple[int, int]:
    """Return the descriptors of this process, and its mappings of links."""
    return len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/maps").read_text().count(
        "memfd:llmd-link"
    )


def test_a_link_leaves_nothing_behind() -> None:
    with linked() as (near, far):  # imports and first uses may open something
        pass
    del near, far
    before = held()
    with linked() as (near, far):
        send(near, [b"frame"], PATIENCE_S)
        assert received(far) == b"frame"
        assert held()[1] == before[1] + 4
    del near, far
    assert held() == before


def test_a_killed_peer_leaves_nothing_behind() -> None:
    before = held()
    with peer() as (link, process):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with pytest.raises(LinkClosedError):
            link.receive(PATIENCE_S)
    del link
    assert held() == before


def test_memory_of_a_large_buffer_is_taken_only_where_frames_lie() -> None:
    def shared_kb() -> int:
        rows = Path("/proc/self/status").read_text().splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith("RssShmem"))

    with linked() as (near, far):
        before = shared_kb()
        for _ in range(100):
            send(near, [bytes(1 << 20)], PATIENCE_S)
            assert received(far) == bytes(1 << 20)
        assert shared_kb() - before < 8 * 1024, "two ends map one buffer"


def test_a_frame_of_more_than_the_buffer_is_refused() -> None:
    with linked() as (near, _), pytest.raises(LinkError, match="exceeds the 1073741824 bytes"):
        near.reserve(BUFFER_BYTES + 1, 0.0)
