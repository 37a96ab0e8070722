"""The counters of the daemon and the requests in flight."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable

from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.feed import Feed
from llmd.server.telemetry.model_metrics import ModelMetrics
from llmd.server.telemetry.series import Series

OTHER_ROUTE = "other"


class Metrics:
    """The metrics of one daemon. Use on its event loop only."""

    def __init__(self, trace: Callable[[RequestRecord], None] | None = None) -> None:
        """``trace`` is called with every finished request that an engine has handled."""
        self._trace = trace
        self.feed = Feed()
        self.series: defaultdict[str, Series] = defaultdict(Series)
        self.replies: Counter[tuple[str, int]] = Counter()
        self.live: dict[int, RequestRecord] = {}

    def of_model(self, model: str) -> ModelMetrics:
        """Return the metrics that the supervisor of a model updates."""
        return ModelMetrics(model, self.series[model], self.feed)

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests in flight that need a model."""
        return [record for record in self.live.values() if record.model]

    def begin(self, record: RequestRecord) -> None:
        self.live[id(record)] = record

    def end(self, record: RequestRecord, status: int) -> None:
        """Count a request that was answered, has failed, or whose client disconnected (status 499)."""
        self.live.pop(id(record), None)
        record.status = status
        self.replies[record.route or OTHER_ROUTE, status] += 1
        if record.model:
            record.progress = record.progress.ended()
            self.feed.emit("request", {"phase": "end", **record.as_event()})
        if record.sequences:
            self._count(record)

    def _count(self, record: RequestRecord) -> None:
        """Count a request that an engine has handled."""
        now, series = time.monotonic(), self.series[record.model]
        series.finished[outcome(record)] += 1
        series.whole.observe(now - record.started)
        series.prompt_len.observe(record.prompt_tokens)
        series.answer_len.observe(record.completion_tokens)
        series.choices.observe(record.sequences)
        if record.first_token:
            decode = record.last_token - record.first_token
            series.decode.observe(decode)
            series.inference.observe(record.last_token - (record.begun or record.first_token))
            if record.completion_tokens > record.sequences:
                series.per_output_token.observe(decode / (record.completion_tokens / record.sequences - 1))
        if self._trace is not None:
            self._trace(record)


def outcome(record: RequestRecord) -> str:
    """Return how a request ended: ``stop``, ``length``, ``error``,
    or ``abort`` if the client disconnected or someone cancelled it.
    """
    if record.cancelled is not None:
        return "abort"
    if record.error or record.status >= 500:
        return "error"
    return record.finish or "abort"
