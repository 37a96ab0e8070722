from __future__ import annotations

import pytest

from llmd.api.reports import SequenceState
from llmd.server.request_progress import RequestProgress, combined, why_queued

WAITING = SequenceState(1, "waiting", "slots")
PREFILL = SequenceState(2, "prefill", None, 5, 2)
DECODE = SequenceState(3, "decode", None, 9, 4)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([WAITING], RequestProgress("waiting", "slots", 7, 0)),
        ([WAITING, PREFILL], RequestProgress("prefill", None, 7, 2)),
        ([PREFILL, DECODE, WAITING], RequestProgress("decode", None, 7, 6)),
    ],
)
def test_a_request_has_come_as_far_as_its_furthest_sequence(
    states: list[SequenceState], expected: RequestProgress
) -> None:
    assert combined(states, prompt_done=7) == expected


@pytest.mark.parametrize(
    ("status", "waits_for", "expected"),
    [("loading", (), "model"), ("loading", ("other",), "memory"), ("loaded", (), None), ("failed", (), None)],
)
def test_a_queued_request_waits_for_its_model_or_for_memory(
    status: str, waits_for: tuple[str, ...], expected: str | None
) -> None:
    assert why_queued(status, waits_for) == expected


def test_progress_of_the_prompt_is_kept_from_state_to_state() -> None:
    begun = RequestProgress("waiting", "slots").reached("prefill", 32)
    assert begun == RequestProgress("prefill", None, 32)
    assert begun.reached("decode", 8) == RequestProgress("decode", None, 32)
    assert RequestProgress("decode", None, 32, 4).ended() == RequestProgress("ended", None, 32, 0)
