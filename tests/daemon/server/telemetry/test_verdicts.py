"""Each sentence that a model may get, and when it gets none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api.messages import ExpertReads, Load, Loaded, StageReport
from llmd.api.reports import Report
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.model_facts import ModelFacts
from llmd.server.telemetry.processor_use import OthersUse
from llmd.server.telemetry.verdicts import verdicts

BARE = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 128)
CPU = StageReport("cpu", "layers 0-3", 1000, 10, 2, read_bytes=900)


def loaded_on(*stages: StageReport) -> Loaded:
    return Loaded("llama", 10, 512, 512, 1, ("f32",), stages, kv_tokens=2048, load_s=0.1)


LOADED = loaded_on(CPU)


def said(**facts: Any) -> list[tuple[str, str]]:
    return [(one.level, one.text) for one in verdicts(ModelFacts(name="tiny", **facts))]


def report(**counters: Any) -> Report:
    return structs.replace(BARE, **counters)


def test_there_is_nothing_to_say_of_an_idle_model() -> None:
    assert said(loaded=LOADED, report=BARE, before=BARE, seconds=1.0, others=OthersUse(2.0, 2)) == []


def test_a_model_that_failed() -> None:
    assert said(error="no weights") == [("warn", "tiny cannot answer: no weights")]


@pytest.mark.parametrize(("restarts", "times"), [(1, "1 time"), (2, "2 times")])
def test_an_engine_that_was_restarted(restarts: int, times: str) -> None:
    (only,) = said(restarts=restarts, last_end="signal 9, SIGKILL")
    assert only == ("warn", f"the engine was restarted {times}: the last one ended with signal 9, SIGKILL")


def test_requests_that_wait_for_blocks_and_those_behind_them() -> None:
    (only,) = said(loaded=LOADED, waiting={"kv_blocks": 1, "earlier": 2})
    text = "3 requests wait for KV blocks: the KV cache holds 2048 tokens; "
    assert only == ("warn", text + "a larger --kv-memory or a smaller --kv-dtype makes room for more")


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        ({"slots": 2}, "2 requests wait for a slot: 8 sequences run at once; a higher --slots allows more"),
        (
            {"slots": 1, "earlier": 1},
            "2 requests wait for a slot: 8 sequences run at once; a higher --slots allows more",
        ),
        ({"model": 1}, "1 request waits until tiny is loaded"),
        ({"grammar": 1}, "1 request waits for a grammar that is being compiled"),
        ({"earlier": 3}, "3 requests wait for earlier ones whose prompts are being computed"),
        ({"client": 1}, "1 request waits for a client that reads more slowly than the model writes"),
    ],
)
def test_requests_that_wait_for_other_things(waiting: dict[str, int], text: str) -> None:
    assert said(waiting=waiting, slots=8) == [("info", text)]


@pytest.mark.parametrize(("others", "names"), [(("a", "b"), "a, b"), ((), "other models")])
def test_requests_whose_model_waits_for_memory(others: tuple[str, ...], names: str) -> None:
    (only,) = said(waiting={"memory": 1}, waits_for=others)
    text = f"1 request waits for memory: tiny is loaded when {names} can be unloaded; "
    assert only == ("warn", text + "`llmd stop MODEL` unloads a model at once")


def test_sequences_that_were_preempted() -> None:
    facts = {"loaded": LOADED, "report": report(preemptions=5), "before": report(preemptions=4)}
    ((level, text),) = said(**facts, seconds=1.01)
    assert level == "warn"
    assert text.startswith(
        "1 sequence lost its KV blocks to others in the last 1 s and must be computed again: "
    )
    ((_, text),) = said(**facts | {"report": report(preemptions=6)}, seconds=2.2)
    assert text.startswith("2 sequences lost their KV blocks to others in the last 2 s")


@pytest.mark.parametrize(("waited", "level"), [(1.9, None), (2.0, "info"), (9.9, "info"), (12.3, "warn")])
def test_a_long_queue(waited: float, level: str | None) -> None:
    expected = [(level, f"queue: the oldest request has waited {waited:.0f} s")] if level else []
    assert said(oldest_wait_s=waited) == expected


RATES = DeviceFacts(read_bytes_per_s={"cpu": 10_000.0})
RAN = report(decode_steps=10, decode_s=1.0, decode_kv_bytes=100)


def test_decode_is_compared_with_the_measured_memory() -> None:
    before = report(decode_steps=2, decode_s=0.2, decode_kv_bytes=20)
    (only,) = said(loaded=LOADED, report=RAN, before=before, devices=RATES)
    assert only == (
        "info",
        "decode runs at 0.91 of what the memory of cpu allows",
    )  # 8 * 900 + 80 bytes in 0.8 s


def test_steps_with_more_rows_read_more_experts() -> None:
    mixture = loaded_on(structs.replace(CPU, experts=(ExpertReads(800, num_experts=8, top_k=2),)))
    ran = report(decode_steps=10, decode_rows=20, decode_s=2.2, decode_kv_bytes=100)
    before = report(decode_steps=2, decode_rows=4, decode_s=0.2, decode_kv_bytes=20)
    (only,) = said(loaded=mixture, report=ran, before=before, devices=RATES)
    assert only[1].startswith("decode runs at 0.50 of")  # 8 * (900 + 800 * (1 - 0.75 ** 2)) + 80 bytes in 2 s


@pytest.mark.parametrize(
    "change",
    [
        {"devices": DeviceFacts()},  # not measured
        {"before": None},
        {"report": report(decode_steps=10, decode_s=0.09)},  # it hardly ran
        {"report": report(decode_steps=10, decode_s=0.2)},  # from caches
        {"loaded": loaded_on(CPU, structs.replace(CPU, device="other"))},  # steps overlap
    ],
)
def test_decode_is_compared_only_where_that_says_something(change: dict[str, Any]) -> None:
    assert said(**{"loaded": LOADED, "report": RAN, "before": BARE, "devices": RATES} | change) == []


BROKEN = DeviceFacts(unusable={"cuda": "the probe crashed (SIGSEGV)"})


def test_why_a_model_runs_on_its_device() -> None:
    expected = ("warn", "runs on cpu, because cuda cannot be used: the probe crashed (SIGSEGV)")
    assert said(loaded=LOADED, devices=BROKEN) == [expected]
    assert said(loaded=LOADED, devices=BROKEN, asked=Load("", device="cpu")) == []


@pytest.mark.parametrize(
    ("others", "level"),
    [(None, None), (OthersUse(0.4, 2), None), (OthersUse(0.5, 2), "warn"), (OthersUse(1.2, 16), "info")],
)
def test_other_programs_that_compute(others: OthersUse | None, level: str | None) -> None:
    devices = DeviceFacts(uses_threads=frozenset({"cpu"}))
    found = said(loaded=LOADED, report=report(steps=3), before=BARE, devices=devices, others=others)
    assert found == (
        [(level, f"other programs use {others.used:.1f} of {others.processors} processors")]
        if level and others
        else []
    )
    assert said(loaded=LOADED, report=report(steps=3), before=BARE, others=others) == []


@pytest.mark.parametrize(("cached", "percent"), [(0, 0), (630, 63)])
def test_what_the_prefix_cache_found(cached: int, percent: int) -> None:
    found = said(report=report(prompt_tokens=1000 - cached, cached_tokens=cached))
    assert found == [("info", f"the prefix cache found {percent} % of the prompt tokens so far")]
    assert said(report=report(prompt_tokens=999 - cached, cached_tokens=cached)) == []


def test_what_is_wrong_comes_before_what_is_good_to_know() -> None:
    levels = [
        level for level, _ in said(error="no weights", restarts=1, waiting={"kv_blocks": 1, "grammar": 1})
    ]
    assert levels == sorted(levels, reverse=True)
