"""The result of a load as a table and as JSON, in the form of ``vllm bench serve``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, structs

from llmd.benchmark.arrivals import RampUp, Traffic
from llmd.benchmark.load import Run
from llmd.benchmark.measures import METRICS, errors, figures, samples_ms, statistics_of

WIDTH = 50
LABEL_WIDTH = 40
SHORT = {"client_queue_time": "client queue", "e2el_including_client_queue": "E2EL with queue"}
DETAILS = (
    *("input_lens", "output_lens", "ttfts", "itls", "latencies"),
    *("start_times", "queue_times", "generated_texts", "errors"),
)


class ReportOptions(Struct, frozen=True):
    """What to report."""

    metrics: tuple[str, ...] = ("ttft", "tpot", "itl", "e2el")
    percentiles: tuple[float, ...] = (99.0,)
    goals_ms: Mapping[str, float] = {}
    """Latency goals that a good request meets."""


class ReportHeader(Struct, frozen=True):
    """What was measured, named as in the JSON result."""

    date: str
    backend: str
    label: str | None
    model_id: str
    tokenizer_id: str
    num_prompts: int

    @classmethod
    def now(
        cls, backend: str, label: str | None, model: str, tokenizer: str, num_prompts: int
    ) -> ReportHeader:
        moment = datetime.now().astimezone()
        return cls(f"{moment:%Y%m%d-%H%M%S}", backend, label, model, tokenizer, num_prompts)


def result(
    head: ReportHeader, metadata: Mapping[str, str], traffic: Traffic, run: Run, chosen: ReportOptions
) -> dict[str, Any]:
    """Return the full result of a load for JSON, including the lists with one entry per request."""
    found = figures(run.outcomes, run.duration_s, chosen.goals_ms)
    times = samples_ms(run.outcomes)
    statistics: dict[str, float] = {}
    for name in reported(chosen, traffic):
        statistics |= statistics_of(name, times[name], chosen.percentiles)
    return {
        **structs.asdict(head),
        "endpoint_type": head.backend,
        **metadata,
        "request_rate": finite(traffic.rate),
        "burstiness": finite(traffic.burstiness),
        "max_concurrency": traffic.max_concurrency,
        **ramped(traffic.ramp_up),
        **structs.asdict(found),
        "error_counts": errors(run.outcomes),
        "interrupted": not run.is_whole,
        "client_cpu_s": run.cpu_s,
        **details(run),
        **statistics,
    }


def ramped(ramp_up: RampUp | None) -> dict[str, Any]:
    """Return the ramp-up for the result; empty without one."""
    return {f"ramp_up_{name}": value for name, value in structs.asdict(ramp_up).items()} if ramp_up else {}


def reported(chosen: ReportOptions, traffic: Traffic) -> list[str]:
    """Return the chosen metrics that apply: without a limit no request waits in the client."""
    queued = (
        {"client_queue_time", "e2el_including_client_queue"} if traffic.max_concurrency is None else set()
    )
    return [name for name in METRICS if name in chosen.metrics and name not in queued]


def details(run: Run) -> dict[str, list[Any]]:
    """Return lists with one entry per request, including failed ones; times are in seconds."""
    outcomes = run.outcomes
    return {
        "input_lens": [outcome.prompt_len for outcome in outcomes],
        "output_lens": [0 if outcome.error else outcome.output_len for outcome in outcomes],
        "ttfts": [outcome.ttft_s for outcome in outcomes],
        "itls": [outcome.itls_s for outcome in outcomes],
        "latencies": [outcome.latency_s for outcome in outcomes],
        "start_times": [outcome.start_s for outcome in outcomes],
        "queue_times": [outcome.queue_s for outcome in outcomes],
        "generated_texts": [outcome.text for outcome in outcomes],
        "errors": [outcome.error for outcome in outcomes],
    }


def without_details(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the lists that have one entry per request."""
    return {name: value for name, value in found.items() if name not in DETAILS}


def finite(number: float) -> float | str:
    """Return infinity as text, like vLLM: JSON has no infinity."""
    return "inf" if math.isinf(number) else number


def file_name(found: Mapping[str, Any]) -> str:
    """Return the default file name of a result."""
    rate = f"{found['request_rate']}qps"
    if "ramp_up_strategy" in found:
        first, last = found["ramp_up_start_rps"], found["ramp_up_end_rps"]
        rate = f"ramp-up-{found['ramp_up_strategy']}-{first:g}qps-{last:g}qps"
    concurrency = found["max_concurrency"]
    parts = [
        found["label"] or found["backend"],
        rate + ("" if concurrency is None else f"-concurrency{concurrency}"),
        str(found["model_id"]).rstrip("/").rpartition("/")[2],
        found["date"],
    ]
    return "-".join(map(str, parts)) + ".json"


def table(found: Mapping[str, Any]) -> str:
    """Format a result for people."""
    lines = [" Serving Benchmark Result ".center(WIDTH, "=")]
    lines += [line(label, found[key]) for label, key in TITLES if found[key] not in {None, "inf"}]
    for name, title in METRICS.items():
        words = [key.removesuffix(f"_{name}_ms") for key in found if key.endswith(f"_{name}_ms")]
        if words:
            lines.append(title.center(WIDTH, "-"))
        short = SHORT.get(name, name.upper())
        lines += [line(f"{heading(word)} {short} (ms):", found[f"{word}_{name}_ms"]) for word in words]
    lines.append("=" * WIDTH)
    lines += [f"{count} failed: {message}" for message, count in found["error_counts"].items()]
    if found["interrupted"]:
        ended = found["completed"] + found["failed"]
        lines.append(f"interrupted after {ended} of {found['num_prompts']} requests")
    return "\n".join(lines)


TITLES = (
    ("Successful requests:", "completed"),
    ("Failed requests:", "failed"),
    ("Maximum request concurrency:", "max_concurrency"),
    ("Request rate configured (RPS):", "request_rate"),
    ("Benchmark duration (s):", "duration"),
    ("Total input tokens:", "total_input_tokens"),
    ("Total generated tokens:", "total_output_tokens"),
    ("Request throughput (req/s):", "request_throughput"),
    ("Request goodput (req/s):", "request_goodput"),
    ("Output token throughput (tok/s):", "output_throughput"),
    ("Peak output token throughput (tok/s):", "max_output_tokens_per_s"),
    ("Peak concurrent requests:", "max_concurrent_requests"),
    ("Total token throughput (tok/s):", "total_token_throughput"),
    ("Client CPU time (s):", "client_cpu_s"),
)


def heading(word: str) -> str:
    """Capitalize: ``mean`` becomes Mean, ``p99`` becomes P99."""
    return word.capitalize()


def line(label: str, value: float | str) -> str:
    """Format a label and its value."""
    return (
        f"{label:<{LABEL_WIDTH}} {value:.2f}"
        if isinstance(value, float)
        else f"{label:<{LABEL_WIDTH}} {value}"
    )
