"""The state of a daemon, kept up to date by its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from llmd.api.decoding import prepared
from llmd_tui.daemon.access import Event
from llmd_tui.state.history import History
from llmd_tui.state.rates import Counters, rates

ENDED_KEPT = 200
"""Requests that are kept after their end."""
LEAST_S = 0.5
"""Rates are over at least this time: reports that were held up arrive at the same moment."""


class Verdict(msgspec.Struct, frozen=True):
    """A sentence about a model that says why it does what it does."""

    text: str
    level: str = "info"
    """``info`` or ``warn``."""
    fix: str = ""
    """What to do."""

    @property
    def sentence(self) -> str:
        """The text and what to do."""
        return "; ".join(filter(None, [self.text, self.fix]))


class Request(msgspec.Struct, frozen=True):
    """A request as the daemon tells it; None where it is not known yet. See ``docs/operations.md``."""

    request_id: str
    model: str = ""
    route: str = ""
    key: str | None = None
    state: str = ""
    """``queued``, ``waiting``, ``prefill``, ``decode`` or ``ended``."""
    waiting_for: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prompt_done: int | None = None
    completion_tokens: int = 0
    kv_blocks: int | None = None
    queue_ms: float | None = None
    ttft_ms: float | None = None
    ms: float = 0.0
    finish: str | None = None
    status: int | None = None
    error: str | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it does not run yet."""
        return self.state in {"queued", "waiting"}

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second after the first; None before the second token."""
        if self.ttft_ms is None or self.completion_tokens < 2 or self.ms <= self.ttft_ms:
            return None
        return (self.completion_tokens - 1) / (self.ms - self.ttft_ms) * 1e3


class Model(msgspec.Struct, frozen=True):
    """A served model."""

    name: str
    status: str = ""
    waiting: int = 0
    engine_pid: int | None = None
    report: Counters | None = None
    verdicts: tuple[Verdict, ...] = ()


class Loading(msgspec.Struct, frozen=True):
    """How far the load of a model is; ``done`` and ``total`` in bytes."""

    step: str = ""
    done: int = 0
    total: int = 0

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if it is not known."""
        return self.done / self.total if self.total else None


class DaemonState:
    """The state after some events. Times are seconds of any clock that never goes back."""

    def __init__(self) -> None:
        self.version = ""
        self.models: dict[str, Model] = {}
        self.loading: dict[str, Loading] = {}
        """Models that are being loaded."""
        self.requests: dict[str, Request] = {}
        """Requests that have not ended, oldest first."""
        self.ended: list[Request] = []
        """The last requests that ended, oldest first."""
        self.processes: Mapping[str, Mapping[str, int]] = {}
        self.notes: list[str] = []
        """What happened to models, in words, oldest first."""
        self.history = History()
        self.last_number: int | None = None
        self._counted: tuple[float, Mapping[str, Counters]] | None = None
        """When the counters were read that the next rates are from, and the counters."""
        self._finished: list[Request] = []

    def apply(self, event: Event, now: float) -> None:
        """Take in an event; unknown ones change nothing, since newer daemons may send more."""
        self.last_number = event.number
        take = {
            "snapshot": self._snapshot,
            "report": self._report,
            "request": self._request,
            "model": self._model,
        }.get(event.type)
        if take is not None:
            take(event.fields, now)

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of all models in the last second."""
        return self.history.last("decode_tps") or 0.0

    @property
    def kv_usage(self) -> float | None:
        """Share of the KV blocks of all models in use; None without loaded models that have them."""
        reports = [one.report for one in self.models.values() if one.report and one.report.kv_blocks_total]
        total = sum(one.kv_blocks_total for one in reports)
        return sum(one.kv_blocks_used for one in reports) / total if total else None

    @property
    def waiting(self) -> int:
        """Requests that do not run yet."""
        return sum(one.is_waiting for one in self.requests.values())

    @property
    def waiting_last(self) -> int:
        """Requests that did not run at the last report, as the graph shows; now, if there was none yet."""
        last = self.history.last("waiting")
        return self.waiting if last is None else round(last)

    def _snapshot(self, fields: Mapping[str, Any], now: float) -> None:
        self.version = str(fields.get("version", ""))
        found = [_request(one) for one in fields.get("requests", ())]
        self.requests = {one.request_id: one for one in found}
        self._counted = None
        self._report(fields, now)
        # Of another daemon: it may not know the models that the one before loaded.
        self.loading = {name: one for name, one in self.loading.items() if name in self.models}

    def _report(self, fields: Mapping[str, Any], now: float) -> None:
        models = msgspec.convert(fields.get("models", ()), prepared(list[Model]))
        self.models = {one.name: one for one in models}
        self.processes = fields.get("processes", {})
        for name in [name for name, one in self.models.items() if one.status != "loading"]:
            self.loading.pop(name, None)
        counters = _counters(self.models)
        if self._counted is None:
            self._counted = (now, counters)
            return
        before, old = self._counted
        if now - before >= LEAST_S:
            self.history.add(rates(old, counters, now - before) | self._latencies())
            self._counted = (now, counters)

    def _latencies(self) -> dict[str, float]:
        """Return latencies of the requests that ended since the last report, and the sizes of the queue."""
        ended, self._finished = self._finished, []
        first = [one.ttft_ms for one in ended if one.ttft_ms is not None]
        later = [1e3 / speed for one in ended if (speed := one.tokens_per_s)]
        figures = {"running": float(len(self.requests) - self.waiting), "waiting": float(self.waiting)}
        if first:
            figures["ttft_ms"] = sum(first) / len(first)
        if later:
            figures["itl_ms"] = sum(later) / len(later)
        if (usage := self.kv_usage) is not None:
            figures["kv_usage"] = usage
        return figures

    def _request(self, fields: Mapping[str, Any], _now: float) -> None:
        request = _request(fields)
        if fields.get("phase") != "end":
            self.requests[request.request_id] = request
            return
        self.requests.pop(request.request_id, None)
        self.ended = [*self.ended[-ENDED_KEPT + 1 :], request]
        self._finished.append(request)

    def _model(self, fields: Mapping[str, Any], _now: float) -> None:
        name, phase = str(fields.get("model", "")), fields.get("phase")
        if phase == "loading":
            self.loading[name] = _loading(fields)
            return
        self.loading.pop(name, None)
        reason = fields.get("reason")
        self.notes = [*self.notes[-ENDED_KEPT + 1 :], f"{name} {phase}" + (f": {reason}" if reason else "")]


def _counters(models: Mapping[str, Model]) -> Mapping[str, Counters]:
    return {name: one.report for name, one in models.items() if one.report is not None}


def _request(fields: Mapping[str, Any]) -> Request:
    known = {name: fields[name] for name in Request.__struct_fields__ if fields.get(name) is not None}
    return msgspec.convert(known, prepared(Request), strict=False)


def _loading(fields: Mapping[str, Any]) -> Loading:
    known: Sequence[str] = Loading.__struct_fields__
    return msgspec.convert(
        {name: fields[name] for name in known if name in fields}, prepared(Loading), strict=False
    )
