"""The sender bounds the frames in flight."""

from __future__ import annotations

import mmap
import socket
from contextlib import closing

import pytest

from llmd.api import LinkTimeoutError
from llmd_transport.records import RECORD, RELEASED
from llmd_transport.sender import MAX_FRAMES, Sender


def test_only_so_many_frames_wait_for_a_peer_that_reads_none() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far, closing(Sender(near, mmap.mmap(-1, 1 << 20))) as sender:
        for _ in range(MAX_FRAMES):
            sender.reserve(1, 0.0)
            sender.commit(1)
        with pytest.raises(LinkTimeoutError, match=f"read none of {MAX_FRAMES} frames"):
            sender.reserve(1, 0.0)
        far.send(RELEASED)
        sender.reserve(1, 0.0)
        sender.commit(1)
        begins = [RECORD.unpack(far.recv(RECORD.size))[0] for _ in range(MAX_FRAMES + 1)]
        assert len(set(begins[:-1])) == MAX_FRAMES
        assert begins[-1] == begins[0]
