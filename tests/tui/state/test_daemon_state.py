from __future__ import annotations

from typing import Any

from llmd_tui.daemon.access import Event
from llmd_tui.state.daemon_state import ENDED_KEPT, DaemonState
from tests.tui.scripted_daemon import model, request


def applied(state: DaemonState, kind: str, now: float = 0.0, /, **fields: Any) -> DaemonState:
    state.apply(Event(kind, 1, fields), now)
    return state


def test_a_snapshot_replaces_everything_live() -> None:
    state = applied(DaemonState(), "snapshot", version="1", models=[model("a")], requests=[request("r1")])
    applied(state, "snapshot", version="2", models=[model("b")], requests=[request("r2", state="waiting")])
    assert state.version == "2"
    assert list(state.models) == ["b"]
    assert list(state.requests) == ["r2"]
    assert state.waiting == 1


def test_a_request_lives_until_its_end() -> None:
    state = applied(DaemonState(), "request", **request("r1", phase="begin", prompt_tokens=7))
    assert state.requests["r1"].prompt_tokens == 7
    applied(state, "request", **request("r1", phase="end", finish="stop", completion_tokens=5, ttft_ms=100.0))
    assert not state.requests
    (ended,) = state.ended
    assert ended.finish == "stop"
    assert ended.tokens_per_s == 4 / 1.4


def test_only_the_last_ended_requests_are_kept() -> None:
    state = DaemonState()
    for number in range(ENDED_KEPT + 5):
        applied(state, "request", **request(f"r{number}", phase="end"))
    assert [state.ended[0].request_id, len(state.ended)] == ["r5", ENDED_KEPT]


def test_reports_make_history() -> None:
    state = applied(DaemonState(), "snapshot", 10.0, models=[model("a", output_tokens=100)], requests=[])
    applied(state, "request", **request("r1", phase="end", ttft_ms=80.0, completion_tokens=11, ms=180.0))
    applied(state, "report", 12.0, models=[model("a", output_tokens=150, steps=110)])
    assert state.tokens_per_s == 25.0
    assert state.kv_usage == 0.1
    assert state.history.last("ttft_ms") == 80.0
    assert state.history.last("itl_ms") == 10.0
    applied(state, "report", 13.0, models=[model("a", output_tokens=150, steps=110)])
    assert state.history.last("ttft_ms") is None  # none ended in this second


def test_reports_that_arrive_at_the_same_moment_make_no_rate() -> None:
    state = applied(DaemonState(), "snapshot", 10.0, models=[model("a", output_tokens=100)], requests=[])
    applied(state, "report", 10.001, models=[model("a", output_tokens=150, steps=110)])
    assert state.tokens_per_s == 0.0
    applied(state, "report", 12.0, models=[model("a", output_tokens=200, steps=120)])
    assert state.tokens_per_s == 50.0


def test_a_daemon_that_was_restarted_loads_nothing_of_the_one_before() -> None:
    state = DaemonState()
    for name in ("lost", "kept"):
        applied(state, "model", model=name, phase="loading", step="weights", done=1, total=4)
    applied(state, "snapshot", models=[model("kept", "loading")], requests=[])
    assert list(state.loading) == ["kept"]


def test_loading_is_followed_until_the_model_is_there() -> None:
    state = applied(DaemonState(), "model", model="big", phase="loading", step="weights", done=1, total=4)
    assert state.loading["big"].done == 1
    applied(state, "model", model="big", phase="loaded", load_s=1.0)
    assert not state.loading
    applied(state, "model", model="big", phase="failed", reason="out of memory")
    assert state.notes == ["big loaded", "big failed: out of memory"]


def test_a_failed_load_that_was_missed_ends_with_the_next_report() -> None:
    state = applied(DaemonState(), "model", model="big", phase="loading")
    applied(state, "report", models=[model("big", "failed")])
    assert not state.loading


def test_events_and_fields_of_newer_daemons_change_nothing() -> None:
    state = applied(DaemonState(), "weather", rain=True)
    applied(state, "request", **request("r1", moon="full"))
    applied(state, "report", models=[model("a", colour="red")], sun=1)
    assert list(state.requests) == ["r1"]


def test_an_engine_that_does_not_answer_has_no_counters() -> None:
    state = applied(DaemonState(), "report", models=[{"name": "a", "status": "restarting", "report": None}])
    assert state.kv_usage is None
