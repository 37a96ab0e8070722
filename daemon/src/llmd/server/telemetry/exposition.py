"""The text of ``/metrics``: llmd's own metric names, and vLLM's for existing dashboards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.reports import Report
from llmd.server.telemetry.daemon_state import ModelState, processes_of
from llmd.server.telemetry.histogram import Histogram
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.series import Series

ENGINE = "0"
"""vLLM's label for one of several engines of a model; llmd has one."""


class _Name(NamedTuple):
    """A metric's llmd name, and vLLM's name if vLLM has the same metric."""

    llmd: str
    vllm: str | None
    help: str


_HISTOGRAMS: Mapping[_Name, Callable[[Series], Histogram]] = {
    _Name("time_to_first_token_seconds", "time_to_first_token_seconds", "Arrival to first token."): (
        lambda series: series.first_token
    ),
    _Name("inter_token_latency_seconds", "inter_token_latency_seconds", "Time between tokens."): (
        lambda series: series.inter_token
    ),
    _Name(
        "time_per_output_token_seconds",
        "request_time_per_output_token_seconds",
        "Mean time between the tokens of a request.",
    ): lambda series: series.per_output_token,
    _Name("request_seconds", "e2e_request_latency_seconds", "Arrival to the end of the reply."): (
        lambda series: series.whole
    ),
    _Name(
        "queue_seconds",
        "request_queue_time_seconds",
        "Hand-over to the engine until the first chunk of a prompt is scheduled.",
    ): (lambda series: series.queue),
    _Name(
        "inference_seconds",
        "request_inference_time_seconds",
        "First chunk of a prompt scheduled until the last token.",
    ): (lambda series: series.inference),
    _Name(
        "prefill_seconds",
        "request_prefill_time_seconds",
        "First chunk of a prompt scheduled until the first token.",
    ): (lambda series: series.prefill),
    _Name("decode_seconds", "request_decode_time_seconds", "First to last token."): (
        lambda series: series.decode
    ),
    _Name("request_prompt_tokens", "request_prompt_tokens", "Prompt tokens of a request."): (
        lambda series: series.prompt_len
    ),
    _Name("request_answer_tokens", "request_generation_tokens", "Answer tokens of a request."): (
        lambda series: series.answer_len
    ),
    _Name("request_choices", "request_params_n", "Sequences of a request."): lambda series: series.choices,
}
_COUNTERS: Mapping[_Name, Callable[[Series], float]] = {
    _Name("prompt_tokens", "prompt_tokens", "Prompt tokens, cached ones included."): (
        lambda series: series.prompt_tokens
    ),
    _Name("prompt_tokens_asked", "prefix_cache_queries", "Prompt tokens looked up in the prefix cache."): (
        lambda series: series.prompt_tokens
    ),
    _Name("prompt_tokens_cached", "prefix_cache_hits", "Prompt tokens found in the prefix cache."): (
        lambda series: series.cached_tokens
    ),
    _Name("answer_tokens", "generation_tokens", "Tokens of answers."): lambda series: series.answer_tokens,
    _Name("model_loads", None, "Times that an engine has loaded the model."): lambda series: series.loads,
    _Name("engine_restarts", None, "Times that the engine died and was started again."): (
        lambda series: series.restarts
    ),
    _Name("model_replans", None, "Times that the model was moved because a device failed."): (
        lambda series: series.replans
    ),
}
_STATES: Mapping[_Name, Callable[[ModelState], float]] = {
    _Name("requests_running", "num_requests_running", "Sequences that run."): (
        lambda model: model.report.running if model.report else 0
    ),
    _Name("requests_waiting", "num_requests_waiting", "Sequences that wait."): lambda model: model.waiting,
}
_GAUGES: Mapping[_Name, Callable[[Report], float]] = {
    _Name("kv_usage_ratio", "kv_cache_usage_perc", "Share of the KV blocks in use, 0 to 1."): (
        lambda report: report.kv_blocks_used / max(report.kv_blocks_total, 1)
    ),
    _Name("kv_blocks_used", None, "KV blocks in use."): lambda report: report.kv_blocks_used,
    _Name("kv_blocks", None, "KV blocks of the pool."): lambda report: report.kv_blocks_total,
    _Name("state_bytes_used", None, "Bytes of states in use."): lambda report: report.state_bytes_used,
    _Name("state_bytes", None, "Bytes of the slots for states."): lambda report: report.state_bytes_total,
}
_TOTALS: Mapping[_Name, Callable[[Report], float]] = {
    _Name("preemptions", "num_preemptions", "Sequences that gave their blocks to others."): (
        lambda report: report.preemptions
    ),
    _Name("steps", None, "Steps of the engine."): lambda report: report.steps,
    _Name("prefill_step_seconds", None, "Time in steps with prefill."): lambda report: report.prefill_s,
    _Name("decode_step_seconds", None, "Time in steps without."): lambda report: report.decode_s,
}

_CACHED_EXPERTS: Mapping[_Name, Callable[[ExpertCacheUse], float]] = {
    _Name("expert_hits", None, "Experts of a layer that a step found in memory."): lambda use: use.hits,
    _Name("expert_misses", None, "Experts of a layer that a step had to read."): lambda use: use.misses,
    _Name("expert_read_bytes", None, "Bytes of the experts that were read."): lambda use: use.read_bytes,
}
"""Only of models whose experts are not all in memory."""


def exposition(version: str, metrics: Metrics, models: Sequence[ModelState]) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(version, metrics, models))
    return generate_latest(registry)


class _Collected(Collector):
    """All metric families, created on request."""

    def __init__(self, version: str, metrics: Metrics, models: Sequence[ModelState]) -> None:
        self._version = version
        self._metrics = metrics
        self._models = models

    def collect(self) -> Iterable[Metric]:
        yield from self._of_daemon()
        yield from _of_requests(self._metrics.series)
        yield from _of_engines(self._models)

    def describe(self) -> Iterable[Metric]:
        return ()

    def _of_daemon(self) -> Iterator[Metric]:
        yield _gauge("build_info", "The version of llmd.", ("version",), [((self._version,), 1)])
        replies = CounterMetricFamily("llmd_http_replies", "Replies.", labels=["route", "status"])
        for (route, status), count in sorted(self._metrics.replies.items()):
            replies.add_metric([route, str(status)], count)
        yield replies
        states = [((model.name, model.status), 1) for model in self._models]
        yield _gauge("model_state", "1 for the state that a model is in.", ("model", "state"), states)
        processes = processes_of(self._models)
        memory = [((name,), use.resident_bytes) for name, use in processes.items()]
        yield _gauge("resident_memory_bytes", "Resident memory of each process.", ("process",), memory)
        files = [((name,), use.descriptors) for name, use in processes.items()]
        yield _gauge("open_descriptors", "Open descriptors of each process.", ("process",), files)
        yield _gauge("event_watchers", "Clients of /llmd/events.", (), [((), self._metrics.feed.watchers)])


def _gauge(
    name: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"llmd_{name}", text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _of_requests(series: Mapping[str, Series]) -> Iterator[Metric]:
    for name, histogram_of in _HISTOGRAMS.items():
        yield from _histograms(name, {model: histogram_of(one) for model, one in series.items()})
    for name, count_of in _COUNTERS.items():
        counts = {model: count_of(one) for model, one in series.items()}
        yield from _values(CounterMetricFamily, name, counts)
    yield from _finished(series)


def _of_engines(models: Sequence[ModelState]) -> Iterator[Metric]:
    for name, number_of in _STATES.items():
        yield from _values(GaugeMetricFamily, name, {model.name: number_of(model) for model in models})
    reports = {model.name: model.report for model in models if model.report is not None}
    for name, value_of in _GAUGES.items():
        yield from _values(GaugeMetricFamily, name, {model: value_of(one) for model, one in reports.items()})
    for name, total_of in _TOTALS.items():
        yield from _values(
            CounterMetricFamily, name, {model: total_of(one) for model, one in reports.items()}
        )
    uses = {model: one.expert_cache for model, one in reports.items() if one.expert_cache is not None}
    for name, count_of in _CACHED_EXPERTS.items():
        yield from _values(CounterMetricFamily, name, {model: count_of(use) for model, use in uses.items()})
    held = [((model,), use.held_bytes) for model, use in uses.items()]
    yield _gauge("expert_bytes", "Bytes of experts in memory, of models that read others.", ("model",), held)
    rates = [((model,), use.hits / max(use.hits + use.misses, 1)) for model, use in uses.items()]
    yield _gauge("expert_hit_ratio", "Share of experts found in memory, 0 to 1.", ("model",), rates)


def _finished(series: Mapping[str, Series]) -> Iterator[Metric]:
    text = "Requests that ended, by how."
    ours = CounterMetricFamily("llmd_requests", text, labels=["model", "outcome"])
    theirs = CounterMetricFamily(
        "vllm:request_success", text, labels=["model_name", "engine", "finished_reason"]
    )
    for model, one in series.items():
        for how, count in sorted(one.finished.items()):
            ours.add_metric([model, how], count)
            theirs.add_metric([model, ENGINE, how], count)
    yield from (ours, theirs)


def _values(kind: Callable[..., Any], name: _Name, values: Mapping[str, float]) -> Iterator[Metric]:
    for family, labels in _families(kind, name):
        for model, value in values.items():
            family.add_metric([model, *labels], value)
        yield family


def _histograms(name: _Name, values: Mapping[str, Histogram]) -> Iterator[Metric]:
    for family, labels in _families(HistogramMetricFamily, name):
        for model, histogram in values.items():
            buckets = [(_bound(bound), count) for bound, count in histogram.cumulative()]
            family.add_metric([model, *labels], buckets=buckets, sum_value=histogram.total)
        yield family


def _families(kind: Callable[..., Any], name: _Name) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield the family under its llmd name and vLLM's, each with the values of its labels after the model."""
    yield kind(f"llmd_{name.llmd}", name.help, labels=["model"]), ()
    if name.vllm is not None:
        yield kind(f"vllm:{name.vllm}", name.help, labels=["model_name", "engine"]), (ENGINE,)


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(bound)
