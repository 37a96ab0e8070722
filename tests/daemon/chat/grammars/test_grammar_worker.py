from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from llmd.api.messages import Grammar
from llmd.chat.grammars.grammar_frames import Checked, CheckJob
from llmd.chat.grammars.grammar_worker import check
from llmd.chat.helper_process import HEADER_BYTES, framed


@pytest.mark.parametrize("control_ids", [(), (0, 1, 2), (100, 151_643), tuple(range(128_000, 128_256))])
def test_grammars_are_good_or_not_whatever_control_tokens_there_are(control_ids: tuple[int, ...]) -> None:
    assert check(CheckJob(Grammar("choice", '["yes", "é😀"]'), control_ids)) == Checked()
    assert "look-around" in check(CheckJob(Grammar("regex", "(?=a)"), control_ids)).message
    for token_id in control_ids[:1]:
        assert check(CheckJob(Grammar("lark", f"start: <[{token_id}]>"), control_ids)) == Checked()


def test_serves_job_after_job() -> None:
    jobs = [CheckJob(Grammar("regex", pattern), ()) for pattern in ("a", "(", "b")]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "llmd.chat.grammars.grammar_worker", str(1 << 30)],
        input=b"".join(framed(msgspec.msgpack.encode(job)) for job in jobs),
        capture_output=True,
        check=True,
    )
    output, replies = done.stdout[HEADER_BYTES:], []
    while output:
        end = HEADER_BYTES + int.from_bytes(output[:HEADER_BYTES], "little")
        replies.append(msgspec.msgpack.decode(output[HEADER_BYTES:end], type=Checked))
        output = output[end:]
    assert [bool(reply.message) for reply in replies] == [False, True, False]
