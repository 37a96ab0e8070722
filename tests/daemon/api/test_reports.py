from __future__ import annotations

import msgspec
import pytest

from llmd.api.messages import FromEngine
from llmd.api.reports import Report, SequenceState

BARE = Report(1, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0)


@pytest.mark.parametrize(
    "sequences", [None, (), (SequenceState(7, "prefill", None, 5, 2), SequenceState(8, "waiting", "slots"))]
)
def test_a_report_arrives_as_it_was_sent(sequences: tuple[SequenceState, ...] | None) -> None:
    sent = msgspec.structs.replace(BARE, sequences=sequences)
    arrived: object = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=FromEngine)
    assert arrived == sent
