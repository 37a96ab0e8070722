"""The receiver does not trust where a peer says that a frame lies."""

from __future__ import annotations

import mmap
import socket
from contextlib import closing

import pytest

from llmd.api import LinkError
from llmd_transport.receiver import Receiver
from llmd_transport.records import RECORD, RELEASED


@pytest.mark.parametrize(("begin", "num_bytes"), [(4096, 1), (0, 4097), (2**64 - 1, 1)])
def test_a_frame_outside_the_memory_is_refused(begin: int, num_bytes: int) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, closing(Receiver(far, mmap.mmap(-1, 4096))) as receiver:
        near.send(RECORD.pack(begin, num_bytes))
        with pytest.raises(LinkError, match="outside the link's memory"):
            receiver.receive(1.0)


def test_a_release_tells_the_sender_once() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, closing(Receiver(far, mmap.mmap(-1, 4096))) as receiver:
        near.send(RECORD.pack(8, 4))
        frame = receiver.receive(1.0)
        assert bytes(frame.data) == bytes(4)
        for _ in range(2):
            frame.release()
        assert near.recv(16) == RELEASED
        with pytest.raises(BlockingIOError):
            near.recv(16, socket.MSG_DONTWAIT)
