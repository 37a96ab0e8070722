"""The sequences of one model that have not ended: their records, queue entries and mailboxes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs

from llmd.api.messages import Submit
from llmd.api.reports import SequenceState
from llmd.api.results import BeamOutput, Started, TextVector, TokenOutput
from llmd.server.engines.admission_limits import AdmissionLimits
from llmd.server.engines.mailbox import Mailbox
from llmd.server.request_progress import RequestProgress, combined
from llmd.server.request_record import QueueEntry, RequestRecord
from llmd.server.telemetry.model_metrics import ModelMetrics, SequenceRecord

STALLED = RequestProgress("waiting", "client")


class LiveSequences:
    """Use on the event loop only. Ids are those of the reader."""

    def __init__(self, admission: AdmissionLimits, metrics: ModelMetrics, clock: Callable[[], float]) -> None:
        self._admission = admission
        self._metrics = metrics
        self._clock = clock
        self._sequences: dict[int, SequenceRecord] = {}
        self._mailboxes: dict[int, Mailbox[Any]] = {}

    def admit(
        self, entries: Sequence[QueueEntry], leads: Sequence[bool], record: RequestRecord
    ) -> list[SequenceRecord]:
        """Admit all sequences of a request at once, or raise and admit none.

        Raises:
            BusyError: the queue is full.
            LlmdError: the request was cancelled.
        """
        if record.cancelled is not None:
            raise record.cancelled
        num_sequences = sum(one.sequences for one in entries)
        num_tokens = sum(one.tokens for one in entries)
        self._admission.admit(record.key, num_sequences, num_tokens, self._clock())
        begun, pairs = time.monotonic(), zip(entries, leads, strict=True)
        return [SequenceRecord(record, entry, begun, leads=lead) for entry, lead in pairs]

    def admit_submits(
        self, requests: Sequence[Submit], counts: Sequence[int], record: RequestRecord
    ) -> list[SequenceRecord]:
        """Admit requests as `admit` does; ``counts`` holds how many sequences each counts as in the queue."""
        entries = [
            QueueEntry(record.key, count, len(r.prompt)) for count, r in zip(counts, requests, strict=True)
        ]
        return self.admit(entries, [r.sampling.choice == 0 for r in requests], record)

    def add(self, request_id: int, sequence: SequenceRecord, mailbox: Mailbox[Any]) -> None:
        """Add a sequence that is about to be submitted."""
        self._sequences[request_id], self._mailboxes[request_id] = sequence, mailbox
        self._metrics.submitted(sequence)

    def begin(self, request_id: int, started: Started) -> None:
        """Note that the engine began to run a sequence."""
        if mailbox := self._mailboxes.get(request_id):
            mailbox.begin(structs.replace(started, request_id=request_id))
            self._metrics.begun(self._sequences[request_id], started)

    def deliver(self, output: TokenOutput | BeamOutput | TextVector) -> None:
        """Count a result and hand it to its reader; the last one ends the sequence."""
        mailbox = self._mailboxes.get(output.request_id)
        if sequence := self._sequences.get(output.request_id):
            if isinstance(output, TokenOutput):
                self._metrics.token(sequence)
            elif isinstance(output, BeamOutput):
                self._metrics.found(sequence, sum(len(found.tokens) for found in output.hypotheses))
        if not isinstance(output, TokenOutput) or output.finish is not None:
            self.end(output.request_id)
        if mailbox is not None:
            mailbox.push(output)

    def end(self, request_id: int) -> Mailbox[Any] | None:
        """Drop a sequence that has ended or was cancelled, and release its queue entry."""
        if sequence := self._sequences.pop(request_id, None):
            self._admission.release(sequence.entry, self._clock())
        return self._mailboxes.pop(request_id, None)

    def note(self, states: Mapping[int, Sequence[SequenceState]], is_paused: Callable[[int], bool]) -> None:
        """Record in each request how far it has come, from the states that the engine has reported.

        A search has several states. A request without any was submitted after the report was made, unless its
        sequences are paused.
        """
        requests: defaultdict[int, dict[int, SequenceRecord]] = defaultdict(dict)
        for request_id, sequence in self._sequences.items():
            requests[id(sequence.request)][request_id] = sequence
        for sequences in requests.values():
            record = next(iter(sequences.values())).request
            if found := [state for request_id in sequences for state in states.get(request_id, ())]:
                missing = sum(
                    one.entry.tokens - _prompt_done(states.get(request_id, ()))
                    for request_id, one in sequences.items()
                    if one.leads
                )
                record.progress = combined(found, record.prompt_tokens - missing)
            elif all(map(is_paused, sequences)):
                record.progress = structs.replace(STALLED, prompt_done=record.progress.prompt_done)


def _prompt_done(states: Sequence[SequenceState]) -> int:
    return max((one.prompt_done for one in states), default=0)
