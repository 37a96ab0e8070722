from __future__ import annotations

import msgspec

from llmd.api.messages import Grammar
from llmd.chat.grammars.check_messages import Checked, CheckJob


def test_a_job_comes_back_as_it_was_and_can_be_a_key() -> None:
    job = CheckJob(Grammar("regex", "é"), (257, 258))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=CheckJob)
    assert {job: 1}[again] == 1


def test_no_message_is_no_refusal() -> None:
    assert not msgspec.msgpack.decode(msgspec.msgpack.encode(Checked()), type=Checked).message
