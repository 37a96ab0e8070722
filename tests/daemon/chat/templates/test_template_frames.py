from __future__ import annotations

import pytest

from llmd.chat.templates.template_frames import (
    HEADER_BYTES,
    Failed,
    Ready,
    Rendered,
    RenderJob,
    Reply,
    pack,
    unpack_job,
    unpack_reply,
)


@pytest.mark.parametrize("reply", [Ready(), Rendered("é"), Failed("memory", "out of memory")])
def test_reply_comes_back_from_its_frame(reply: Reply) -> None:
    frame = pack(reply)
    assert int.from_bytes(frame[:HEADER_BYTES], "little") == len(frame) - HEADER_BYTES
    assert unpack_reply(frame[HEADER_BYTES:]) == reply


def test_job_comes_back_from_its_frame() -> None:
    job = RenderJob(
        "{{ messages }}", {"messages": [{"role": "user", "content": None}]}, "2026-02-03T04:05:06"
    )
    assert unpack_job(pack(job)[HEADER_BYTES:]) == job


def test_integers_beyond_64_bits_do_not_fit() -> None:
    with pytest.raises(OverflowError):
        pack(RenderJob("", {"n": 2**64}, ""))
