"""Metrics and events of one model and its sequences, as reported by its supervisor."""

from __future__ import annotations

import time

from msgspec import Struct

from llmd.api.messages import Loaded, Loading, Replanned
from llmd.api.results import Started
from llmd.server.request_progress import RequestProgress, WaitingFor
from llmd.server.request_record import QueueEntry, RequestRecord
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.series import Series


class SequenceRecord(Struct, eq=False):
    """A sequence in flight."""

    request: RequestRecord
    entry: QueueEntry
    submitted: float
    leads: bool
    """Whether its prompt tokens are counted. The further choices of ``n`` share the prompt and are not."""
    begun: float = 0.0
    last_token: float = 0.0


class ModelMetrics:
    """Use on the event loop only. Times are seconds of `time.monotonic`."""

    def __init__(self, model: str, series: Series, feed: Feed) -> None:
        self._model = model
        self._series = series
        self._feed = feed

    def loading(self, progress: Loading) -> None:
        self._tell("loading", step=progress.phase, done=progress.done, total=progress.total)

    def placed(self, message: Loaded | Replanned) -> None:
        """Count a load, or a move to other devices after one of them failed."""
        if isinstance(message, Loaded):
            self._series.loads += 1
            self._tell(
                "loaded",
                load_s=message.load_s,
                context_len=message.context_len,
                kv_tokens=message.kv_tokens,
            )
        else:
            self._series.replans += 1
            devices = [stage.device for stage in message.stages]
            self._tell("replanned", devices=devices, kv_tokens=message.kv_tokens)

    def died(self, how: str, *, starts_again: bool) -> None:
        """Count an engine that died unexpectedly."""
        self._series.restarts += starts_again
        self._tell("restarting" if starts_again else "failed", reason=how)

    def closed(self) -> None:
        self._tell("unloaded")

    def queued(self, request: RequestRecord, waiting_for: WaitingFor | None = None) -> None:
        """Note that a request waits until its model is loaded and its prompt prepared."""
        request.model = self._model
        request.progress = RequestProgress(waiting_for=waiting_for)
        self._feed.emit("request", {"phase": "begin", **request.as_event()})

    def opened(self, request: RequestRecord, sequences: int) -> None:
        """Note that a request was submitted to the engine or its queue."""
        if not request.model:
            self.queued(request)
        request.sequences = sequences
        request.progress = request.progress.reached("waiting")

    def submitted(self, sequence: SequenceRecord) -> None:
        if sequence.leads:
            self._series.prompt_tokens += sequence.entry.tokens
            sequence.request.prompt_tokens += sequence.entry.tokens

    def begun(self, sequence: SequenceRecord, started: Started) -> None:
        """Note when a sequence first began to run; a later start, after a preemption, does not count."""
        if sequence.begun:
            return
        request = sequence.request
        sequence.begun = max(time.monotonic() - started.running_s, sequence.submitted)
        waited = sequence.begun - sequence.submitted
        request.begun = request.begun or sequence.begun
        self._series.queue.observe(waited)
        request.queue_s = max(request.queue_s, waited)
        if sequence.leads:
            cached = min(started.cached_tokens, sequence.entry.tokens)
            self._series.cached_tokens += cached
            request.cached_tokens += cached
        if request.progress.state == "waiting":
            request.progress = request.progress.reached("prefill", started.cached_tokens)

    def token(self, sequence: SequenceRecord) -> None:
        """Count a token of a sequence."""
        now = time.monotonic()
        if sequence.last_token:
            self._series.inter_token.observe(now - sequence.last_token)
        self._count(sequence, 1, now)

    def found(self, sequence: SequenceRecord, num_tokens: int) -> None:
        """Count all tokens of a beam search, which arrive at once."""
        self._count(sequence, num_tokens, time.monotonic())

    def _count(self, sequence: SequenceRecord, num_tokens: int, now: float) -> None:
        request = sequence.request
        request.completion_tokens += num_tokens
        self._series.answer_tokens += num_tokens
        if not (sequence.last_token or request.first_token):
            request.first_token = now
            request.progress = request.progress.reached("decode", sequence.entry.tokens)
            self._series.first_token.observe(now - request.started)
            self._series.prefill.observe(now - (sequence.begun or sequence.submitted))
        sequence.last_token = request.last_token = now

    def _tell(self, phase: str, **fields: object) -> None:
        self._feed.emit("model", {"model": self._model, "phase": phase, **fields})


def no_metrics(model: str) -> ModelMetrics:
    """Return metrics that are not exported."""
    return ModelMetrics(model, Series(), Feed())
