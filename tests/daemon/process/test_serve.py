"""The child's side of a worker."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from llmd.process.frames import frame, read_payload

MEMORY_BYTES = 512 << 20
PROGRAM = """
from llmd.process.serve import serve
def answer(payload):
    return b"x" * int(payload)
serve(answer, memory_bytes={memory}, out_of_memory={last})
"""


def replies(*requests: int, last: bytes | None = None) -> tuple[list[bytes], int]:
    """Return the replies to requests for these numbers of bytes, without the first frame,
    and the exit status.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(memory=MEMORY_BYTES, last=last)],
        input=b"".join(frame(str(size).encode()) for size in requests),
        capture_output=True,
        check=False,
    )
    stream = io.BytesIO(done.stdout)
    assert read_payload(stream) == b"", "the first frame says that it is ready"
    return list(iter(lambda: read_payload(stream), None)), done.returncode


def test_each_request_has_its_reply_until_the_input_ends() -> None:
    assert replies(1, 0, 3) == ([b"x", b"", b"xxx"], 0)


def test_a_request_that_takes_too_much_memory_ends_the_process_after_a_last_reply() -> None:
    assert replies(1, MEMORY_BYTES, 1, last=b"too much") == ([b"x", b"too much"], 0)


def test_without_a_last_reply_it_just_ends() -> None:
    answers, status = replies(1, MEMORY_BYTES, 1)
    assert answers == [b"x"]
    assert status != 0


@pytest.mark.parametrize("size", [1 << 20])
def test_long_replies_are_whole(size: int) -> None:
    assert replies(size) == ([b"x" * size], 0)
