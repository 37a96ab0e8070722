"""Frames are leased; finished parts are copied to one frame."""

from __future__ import annotations

import numpy as np
import pytest

from llmd.api.transport import Frame, send


class Sent:
    """A link that keeps what was sent."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        assert timeout_s == 2.0
        self.buffer = memoryview(bytearray(num_bytes))
        return self.buffer

    def commit(self, num_bytes: int) -> None:
        self.frames.append(bytes(self.buffer[:num_bytes]))

    def receive(self, timeout_s: float) -> Frame:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def test_parts_become_one_frame() -> None:
    link = Sent()
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    send(link, [b"head", bytearray(b"er"), rows.data], 2.0)
    send(link, [], 2.0)
    assert link.frames == [b"header" + rows.tobytes(), b""]


def test_a_frame_is_released_once_and_cannot_be_read_after_that() -> None:
    released: list[str] = []
    frame = Frame(memoryview(b"abc"), lambda: released.append("it"))
    with frame as data:
        assert bytes(data) == b"abc"
        assert not released
    frame.release()
    assert released == ["it"]
    with pytest.raises(ValueError, match="released"):
        bytes(data)


def test_the_data_of_a_frame_is_read_only() -> None:
    buffer = bytearray(b"abc")
    with Frame(memoryview(buffer)) as data, pytest.raises(TypeError):
        data[0] = 1
