"""The progress of requests, from the states that an engine reports of their sequences."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmd.api.errors import LlmdError
from llmd.api.messages import StopParams, Submit
from llmd.api.reports import SequenceState
from llmd.api.results import TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.server.engines.admission_limits import DEFAULT_LIMITS, AdmissionLimits
from llmd.server.engines.live_sequences import STALLED, LiveSequences
from llmd.server.engines.mailbox import Mailbox
from llmd.server.request_progress import RequestProgress
from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.model_metrics import no_metrics

PROMPT = tuple(range(100))


class Nobody:
    def cancel(self, request_id: int) -> None:
        """Nothing runs."""


def live_with(record: RequestRecord, *, prompts: int = 1, choices: int = 1) -> LiveSequences:
    """Return the live sequences of one request; their ids count from 0."""
    admission = AdmissionLimits("tiny", 4, DEFAULT_LIMITS, 0.0)
    live = LiveSequences(admission, no_metrics("tiny"), lambda: 0.0)
    submits = [
        Submit(0, PROMPT, SamplingParams(seed=1, choice=choice), StopParams(4))
        for _ in range(prompts)
        for choice in range(choices)
    ]
    mailbox: Mailbox[TokenOutput] = Mailbox(tuple(range(len(submits))), Nobody())
    for number, sequence in enumerate(live.admit_submits(submits, [1] * len(submits), record)):
        live.add(number, sequence, mailbox)
    return live


def note(live: LiveSequences, *states: SequenceState, paused: Sequence[int] = ()) -> None:
    live.note({one.request_id: [one] for one in states}, lambda request_id: request_id in paused)


def test_prompts_of_a_request_add_up_but_choices_share_theirs() -> None:
    record = RequestRecord()
    live = live_with(record, prompts=2, choices=2)
    note(live, SequenceState(0, "prefill", None, 60, 4), SequenceState(1, "waiting", "earlier"))
    assert record.progress == RequestProgress("prefill", None, 60, 4)
    note(live, *(SequenceState(number, "decode", None, 100, 7) for number in range(4)))
    assert record.progress == RequestProgress("decode", None, 200, 28)


def test_the_prompt_of_a_sequence_that_has_ended_is_done() -> None:
    record = RequestRecord()
    live = live_with(record, prompts=2)
    live.end(0)
    note(live, SequenceState(1, "prefill", None, 10, 1))
    assert record.progress.prompt_done == 110


def test_a_request_that_the_report_does_not_have_yet_stays_as_it_is() -> None:
    record = RequestRecord(progress=RequestProgress("waiting"))
    note(live_with(record))
    assert record.progress == RequestProgress("waiting")


def test_a_request_whose_reader_is_slow_waits_for_its_client() -> None:
    record = RequestRecord(progress=RequestProgress("decode", None, 100, 7))
    note(live_with(record), paused=(0,))
    assert (record.progress.state, record.progress.waiting_for) == (STALLED.state, "client")
    assert record.progress.prompt_done == 100


def test_a_cancelled_request_is_not_admitted() -> None:
    record = RequestRecord(cancelled=LlmdError("cancelled"))
    with pytest.raises(LlmdError, match="cancelled"):
        live_with(record)


def test_a_search_is_as_far_as_its_furthest_beam() -> None:
    record = RequestRecord()
    live = live_with(record)
    live.note({0: [SequenceState(0, "decode", None, 100, 7), SequenceState(0, "decode", None, 100, 8)]}, bool)
    assert record.progress == RequestProgress("decode", None, 100, 15)
