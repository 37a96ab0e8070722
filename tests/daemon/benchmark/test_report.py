"""Results have vLLM's keys and layout."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from llmd.benchmark.arrivals import RampUp, Traffic
from llmd.benchmark.load import Run
from llmd.benchmark.report import (
    DETAILS,
    ReportHeader,
    ReportOptions,
    file_name,
    result,
    table,
    without_details,
)
from llmd.benchmark.timeline import Outcome

HEAD = ReportHeader("20260102-030405", "openai", None, "org/tiny", "/models/tiny", 3)
GOOD = Outcome(100, 10.0, 0.25, 0.5, (0.1, 0.2, 0.3), 1.1, 4, "abcd")
FAILED = Outcome(100, 10.0, 0.0, error="503: full")
RUN = Run((GOOD, FAILED), 2.0, 0.125)

# The keys that `vllm bench serve --save-result --percentile-metrics ttft,tpot,itl,e2el` writes.
HEAD_KEYS = {
    *("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts"),
    *("request_rate", "burstiness", "max_concurrency"),
}
FIGURE_KEYS = {
    *("duration", "completed", "failed", "total_input_tokens", "total_output_tokens"),
    *("request_throughput", "request_goodput", "output_throughput", "total_token_throughput"),
    *("max_output_tokens_per_s", "max_concurrent_requests"),
}
STATISTIC_KEYS = {
    f"{word}_{name}_ms"
    for word in ("mean", "median", "std", "p99")
    for name in ("ttft", "tpot", "itl", "e2el")
}
OUR_KEYS = {"client_cpu_s", "error_counts", "interrupted"}


def made(run: Run = RUN, traffic: Traffic = Traffic(), **chosen: Any) -> dict[str, Any]:  # noqa: B008
    return result(HEAD, {}, traffic, run, ReportOptions(**chosen))


def test_a_result_has_the_keys_of_vllm_and_three_of_ours() -> None:
    expected = HEAD_KEYS | FIGURE_KEYS | STATISTIC_KEYS | OUR_KEYS
    assert set(without_details(made())) == expected
    assert set(made()) == expected | set(DETAILS)


def test_figures_and_lists_are_those_of_the_run() -> None:
    found = made(goals_ms={"ttft": 400.0})
    assert (found["completed"], found["failed"], found["duration"]) == (1, 1, 2.0)
    assert (found["request_throughput"], found["request_goodput"]) == (0.5, 0.0)
    assert found["mean_ttft_ms"] == 500.0
    assert found["client_cpu_s"] == 0.125
    assert found["error_counts"] == {"503: full": 1}
    assert found["errors"] == ["", "503: full"]
    assert found["output_lens"] == [4, 0]
    assert found["generated_texts"] == ["abcd", ""]
    assert found["itls"] == [(0.1, 0.2, 0.3), ()]


def test_metrics_and_percentiles_are_chosen() -> None:
    found = made(metrics=("itl",), percentiles=(50.0, 99.9))
    assert {key for key in found if key.endswith("_ms")} == {
        f"{word}_itl_ms" for word in ("mean", "median", "std", "p50", "p99.9")
    }


def test_waiting_in_the_client_is_reported_where_there_is_a_limit() -> None:
    waits = ("client_queue_time", "e2el_including_client_queue")
    assert "mean_client_queue_time_ms" not in made(metrics=waits)
    found = made(metrics=waits, traffic=Traffic(max_concurrency=2))
    assert found["mean_client_queue_time_ms"] == 250.0
    assert found["mean_e2el_including_client_queue_ms"] == pytest.approx(1350.0)


def test_json_can_hold_a_result_with_infinite_rates() -> None:
    found = made(traffic=Traffic(math.inf, math.inf))
    assert (found["request_rate"], found["burstiness"]) == ("inf", "inf")
    decoded = json.loads(msgspec.json.encode(found))
    assert decoded["request_rate"] == "inf"
    assert decoded["itls"] == [[0.1, 0.2, 0.3], []]


def test_metadata_is_kept() -> None:
    assert result(HEAD, {"machine": "mine"}, Traffic(), RUN, ReportOptions())["machine"] == "mine"


def test_the_file_is_named_after_load_model_and_time() -> None:
    assert file_name(made()) == "openai-infqps-tiny-20260102-030405.json"
    limited = made(traffic=Traffic(2.5, 1.0, 16))
    assert file_name(limited) == "openai-2.5qps-concurrency16-tiny-20260102-030405.json"
    assert file_name(limited | {"label": "mine"}).startswith("mine-2.5qps-")


def test_a_rate_that_changed_is_told_and_named() -> None:
    found = made(traffic=Traffic(ramp_up=RampUp("linear", 1.0, 8.0)))
    assert (found["ramp_up_strategy"], found["ramp_up_start_rps"], found["ramp_up_end_rps"]) == (
        "linear",
        1.0,
        8.0,
    )
    assert file_name(found) == "openai-ramp-up-linear-1qps-8qps-tiny-20260102-030405.json"


def test_the_table_has_a_line_for_each_figure_and_each_error() -> None:
    lines = table(made(metrics=("ttft", "e2el"), goals_ms={"ttft": 600.0})).splitlines()
    assert lines[0] == "============ Serving Benchmark Result ============"
    assert f"{'Successful requests:':<40} 1" in lines
    assert f"{'Request goodput (req/s):':<40} 0.50" in lines
    assert "---------------Time to First Token----------------" in lines
    assert f"{'Median TTFT (ms):':<40} 500.00" in lines
    assert f"{'P99 E2EL (ms):':<40} 1100.00" in lines
    assert not any("TPOT" in line for line in lines)
    assert lines[-1] == "1 failed: 503: full"


def test_the_table_says_that_a_load_was_interrupted() -> None:
    run = Run(RUN.outcomes, 2.0, 0.1, is_whole=False)
    assert table(made(run)).splitlines()[-1] == "interrupted after 2 of 3 requests"
