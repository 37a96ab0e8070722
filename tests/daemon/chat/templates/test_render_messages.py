from __future__ import annotations

import pytest

from llmd.chat.templates.render_messages import (
    Failed,
    Rendered,
    RenderJob,
    Reply,
    pack,
    unpack_job,
    unpack_reply,
)


@pytest.mark.parametrize("reply", [Rendered("é"), Failed("memory", "out of memory")])
def test_a_reply_comes_back_as_it_was(reply: Reply) -> None:
    assert unpack_reply(pack(reply)) == reply


def test_a_job_comes_back_as_it_was() -> None:
    job = RenderJob(
        "{{ messages }}", {"messages": [{"role": "user", "content": None}]}, "2026-02-03T04:05:06"
    )
    assert unpack_job(pack(job)) == job


def test_integers_beyond_64_bits_do_not_fit() -> None:
    with pytest.raises(OverflowError):
        pack(RenderJob("", {"n": 2**64}, ""))
