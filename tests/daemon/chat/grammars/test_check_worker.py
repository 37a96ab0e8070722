from __future__ import annotations

import io
import subprocess
import sys

import msgspec
import pytest

from llmd.api.messages import Grammar
from llmd.chat.grammars.check_messages import Checked, CheckJob
from llmd.chat.grammars.check_worker import check
from llmd.chat.grammars.grammar_checker import WORKER
from llmd.process.frames import frame, read_payload


@pytest.mark.parametrize("control_ids", [(), (0, 1, 2), (100, 151_643), tuple(range(128_000, 128_256))])
def test_grammars_are_good_or_not_whatever_control_tokens_there_are(control_ids: tuple[int, ...]) -> None:
    assert check(CheckJob(Grammar("choice", '["yes", "é😀"]'), control_ids)) == Checked()
    assert "look-around" in check(CheckJob(Grammar("regex", "(?=a)"), control_ids)).message
    for token_id in control_ids[:1]:
        assert check(CheckJob(Grammar("lark", f"start: <[{token_id}]>"), control_ids)) == Checked()


def test_serves_job_after_job() -> None:
    jobs = [CheckJob(Grammar("regex", pattern), ()) for pattern in ("a", "(", "b")]
    done = subprocess.run(
        [sys.executable, "-P", "-m", WORKER, str(1 << 30)],
        input=b"".join(frame(msgspec.msgpack.encode(job)) for job in jobs),
        capture_output=True,
        check=True,
    )
    stream = io.BytesIO(done.stdout)
    assert read_payload(stream) == b""
    payloads = iter(lambda: read_payload(stream), None)
    replies = [msgspec.msgpack.decode(payload, type=Checked) for payload in payloads]
    assert [bool(reply.message) for reply in replies] == [False, True, False]
