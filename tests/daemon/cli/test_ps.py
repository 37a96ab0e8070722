"""`llmd ps` shows which models are loaded, on which devices, and their state."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from llmd.cli import ps
from tests.serving.engine_state import asked as asked_of
from tests.serving.engine_state import wait_until
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

Llmd = Callable[..., Any]

STAGES = [
    {"device": "cpu", "parts": "layers 0-3", "weight_bytes": 100, "kv_bytes": 10, "step_bytes": 2},
    {"device": "reference", "parts": "layers 4-5", "weight_bytes": 50, "kv_bytes": 5, "step_bytes": 1},
]
REPORT = {
    "running": 2,
    "waiting": 1,
    "kv_blocks_used": 7,
    "kv_blocks_total": 64,
    "output_tokens": 90,
    "decode_s": 3.0,
}
LOADED = {
    "users": 0,
    "waits_for": [],
    "expires_at": None,
    "loading": None,
    "status": "loaded",
    "error": None,
    "loaded": {"stages": STAGES},
    "report": REPORT,
}
LOADING: dict[str, Any] = {
    "status": "loading",
    "error": None,
    "report": None,
    "loading": None,
    "waits_for": [],
}


def test_shows_the_loaded_model_with_its_alias(asked: Llmd) -> None:
    done = asked("ps", "--plain")
    assert done.out.splitlines()[0].split("\t") == [column.title for column in ps.COLUMNS]
    row = done.out.splitlines()[1].split("\t")
    assert row[0] == "tiny, other"
    assert (row[2], row[4], row[-1]) == ("reference layers 0-1", "512 tokens", "loaded")


def test_status_means_the_same_and_json_has_every_field(asked: Llmd) -> None:
    document = json.loads(asked("status", "--json").out)
    assert document["schema"] == 1
    (model,) = document["models"]
    assert model["name"] == "tiny"
    assert model["report"]["kv_blocks_total"] > 0


def test_warnings_are_lines_below_the_table_and_the_rest_is_for_others() -> None:
    said = [{"level": "info", "text": "all is well"}, {"level": "warn", "text": "it is slow", "fix": "wait"}]
    assert ps.warnings([{"name": "tiny", "verdicts": said}, {"name": "other", "verdicts": []}]) == [
        "warning: tiny: it is slow; wait"
    ]
    assert ps.warnings([{"name": "of an older daemon"}]) == []


def test_layers_are_named_as_people_count_them() -> None:
    assert ps.where(LOADED) == "cpu layers 0-3, reference layers 4-5"
    assert ps.size_of(LOADED) == 168


def test_counts_blocks_requests_and_tokens() -> None:
    assert (ps.kv(LOADED), ps.requests(LOADED), ps.rate(LOADED)) == ("7/64 blocks", "2/1", "30.0")
    encoder = {**LOADED, "report": {**REPORT, "kv_blocks_used": 0, "kv_blocks_total": 0}}
    assert ps.kv(encoder) == ""


def test_bytes_of_states_are_beside_the_blocks() -> None:
    states = {"state_bytes_used": 3 << 20, "state_bytes_total": 9 << 20}
    assert ps.kv({**LOADED, "report": {**REPORT, **states}}) == "7/64 blocks, 3.0 MiB/9.0 MiB of states"
    recurrent = {**REPORT, **states, "kv_blocks_used": 0, "kv_blocks_total": 0}
    assert ps.kv({**LOADED, "report": recurrent}) == "3.0 MiB/9.0 MiB of states"


def test_steps_are_compared_with_their_prediction() -> None:
    times = [{"measured_ms": 4.04, "predicted_ms": 3.9}, {"measured_ms": 10.0, "predicted_ms": None}]
    assert ps.step_ms({"stage_times": times}) == "4.0/3.9 + 10.0/?"
    assert ps.step_ms({"stage_times": [{"measured_ms": None, "predicted_ms": None}]}) == ""
    assert ps.step_ms({"name": "of an older daemon"}) == ""


def test_a_model_that_is_not_loaded_yet_has_none_of_these() -> None:
    assert [ps.where(LOADING), ps.kv(LOADING), ps.requests(LOADING), ps.rate(LOADING)] == [""] * 4
    assert ps.state(LOADING) == "loading"


def test_a_model_that_loads_says_how_far_it_has_come() -> None:
    progress = {"phase": "layers 0-3 on cpu", "done": 30, "total": 40}
    assert ps.state({**LOADING, "loading": progress}) == "loading 75 %: layers 0-3 on cpu"


def test_a_model_that_waits_for_memory_says_whose() -> None:
    assert ps.state({**LOADING, "waits_for": ["a", "b"]}) == "loading: waiting for the memory of a, b"


def test_says_how_long_a_model_stays() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert ps.until({"users": 1, "expires_at": None}, now) == "in use"
    assert ps.until({"users": 0, "expires_at": None}, now) == "for ever"
    assert ps.until({"users": 0, "expires_at": "2026-01-01T12:04:10+00:00"}, now) == "4 min 10 s"
    assert ps.until({"users": 0, "expires_at": "2026-01-01T12:00:09+00:00"}, now) == "9 s"
    assert ps.until({"users": 0, "expires_at": "2026-01-01T11:00:00+00:00"}, now) == "0 s"


def test_a_failed_model_says_why() -> None:
    assert ps.state({"status": "failed", "error": "no room"}) == "failed: no room"


def test_asking_a_daemon_imports_nothing_heavy() -> None:
    code = """
import sys
from llmd.cli.main import run
assert run(["ps", "--host", "127.0.0.1:1"]) == 6
heavy = {"numpy", "aiohttp", "asyncio", "rich", "tokenizers", "pluggy"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


def test_requests_are_shown_with_what_they_wait_for(
    llmd: Llmd, tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    long = {"max_tokens": 1 << 14, "ignore_eos": True}
    with running_daemon(directories, slots=1) as busy:
        monkeypatch.setenv("LLMD_HOST", f"unix:{busy.socket}")
        with asked_of(busy, long, headers={"x-request-id": "first"}):
            wait_until(busy, running=1)
            with asked_of(busy, long, headers={"x-request-id": "second"}):
                wait_until(busy, waiting=1)
                shown = llmd("ps", "--requests", "--plain", "--columns", "ID,MODEL,WAITS FOR").out
                as_json = json.loads(llmd("ps", "--requests", "--json").out)
    assert shown.splitlines()[1:] == ["first\ttiny\t–", "second\ttiny\ta slot"]
    assert [one["waiting_for"] for one in as_json["requests"]] == [None, "slots"]
