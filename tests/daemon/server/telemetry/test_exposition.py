"""The text is read back with Prometheus' own parser."""

from __future__ import annotations

from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.reports import Report
from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.daemon_state import ModelState
from llmd.server.telemetry.exposition import exposition
from llmd.server.telemetry.metrics import Metrics

REPORT = Report(
    steps=9,
    running=2,
    waiting=3,
    prompt_tokens=0,
    cached_tokens=0,
    output_tokens=0,
    preemptions=4,
    prefill_s=1.0,
    decode_s=2.0,
    kv_blocks_used=5,
    kv_blocks_total=20,
    state_bytes_used=300,
    state_bytes_total=900,
)
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(metrics: Metrics, *models: ModelState) -> Samples:
    text = exposition("1.2", metrics, models).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_engines_are_told_under_both_names() -> None:
    found = samples(Metrics(), ModelState("tiny", "loaded", 3, None, REPORT))
    theirs = {"model_name": "tiny", "engine": "0"}
    for name, number in (("requests_running", 2), ("requests_waiting", 3)):
        assert value(found, f"llmd_{name}", model="tiny") == number
        assert value(found, f"vllm:num_{name}", **theirs) == number
    assert value(found, "vllm:kv_cache_usage_perc", **theirs) == 0.25
    assert value(found, "vllm:num_preemptions_total", **theirs) == 4
    assert value(found, "llmd_kv_blocks", model="tiny") == 20
    assert value(found, "llmd_state_bytes_used", model="tiny") == 300
    assert value(found, "llmd_state_bytes", model="tiny") == 900
    assert value(found, "llmd_model_state", model="tiny", state="loaded") == 1
    assert value(found, "llmd_build_info", version="1.2") == 1


def test_experts_are_counted_of_models_that_read_them() -> None:
    report = structs.replace(REPORT, expert_cache=ExpertCacheUse(30, 10, 500, 200))
    models = [ModelState("large", "loaded", 0, None, report), ModelState("tiny", "loaded", 0, None, REPORT)]
    found = samples(Metrics(), *models)
    assert value(found, "llmd_expert_hits_total", model="large") == 30
    assert value(found, "llmd_expert_misses_total", model="large") == 10
    assert value(found, "llmd_expert_read_bytes_total", model="large") == 500
    assert value(found, "llmd_expert_bytes", model="large") == 200
    assert value(found, "llmd_expert_hit_ratio", model="large") == 0.75
    assert not [name for name, labels in found if "expert" in name and ("model", "tiny") in labels]


def test_an_engine_that_does_not_answer_has_what_the_front_knows() -> None:
    found = samples(Metrics(), ModelState("tiny", "loading", 8))
    assert value(found, "llmd_requests_waiting", model="tiny") == 8
    assert value(found, "llmd_requests_running", model="tiny") == 0
    assert not any(name == "llmd_kv_blocks" for name, _ in found)


def test_requests_are_told_as_counters_and_histograms() -> None:
    metrics = Metrics()
    record = RequestRecord(model="tiny", sequences=1, prompt_tokens=7, finish="stop", route="/v1/completions")
    metrics.series["tiny"].first_token.observe(0.03)
    metrics.series["tiny"].cached_tokens += 6
    metrics.end(record, 200)
    found = samples(metrics)
    theirs = {"model_name": "tiny", "engine": "0"}
    assert value(found, "vllm:request_success_total", **theirs, finished_reason="stop") == 1
    assert value(found, "llmd_requests_total", model="tiny", outcome="stop") == 1
    assert value(found, "vllm:prefix_cache_hits_total", **theirs) == 6
    assert value(found, "llmd_http_replies_total", route="/v1/completions", status="200") == 1
    buckets = {
        bound: value(found, "vllm:time_to_first_token_seconds_bucket", **theirs, le=bound)
        for bound in ("0.02", "0.04", "+Inf")
    }
    assert buckets == {"0.02": 0, "0.04": 1, "+Inf": 1}
    assert value(found, "llmd_time_to_first_token_seconds_sum", model="tiny") == 0.03
    assert value(found, "vllm:request_prompt_tokens_count", **theirs) == 1


def test_names_with_quotes_are_told_whole() -> None:
    name = 'a "b"\\c\nd'
    assert value(samples(Metrics(), ModelState(name, "loaded", 1)), "llmd_requests_waiting", model=name) == 1
